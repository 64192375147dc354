/**
 * Whether someone is about to choose: a list is open, or something is held down. What comes by itself and
 * would move what is on the screen waits until then, so that a release meets what was pressed.
 */
import { useEffect, useState } from "react";
import { flushSync } from "react-dom";
import { createStore } from "zustand/vanilla";

const choosing = createStore(() => ({ isListOpen: false, isPressed: false }));

/** A list is open until what this gives is called. */
export function beginList(): () => void {
  choosing.setState({ isListOpen: true });
  return () => choosing.setState({ isListOpen: false });
}

export function listenToPresses(): void {
  const press = () => choosing.setState({ isPressed: true });
  const release = () => setTimeout(() => choosing.setState({ isPressed: false }));
  window.addEventListener("pointerdown", press, { capture: true });
  window.addEventListener("pointerup", release, { capture: true });
  window.addEventListener("pointercancel", release, { capture: true });
}

/** Calls back once nobody is about to choose; at once where nobody is. Gives what calls it off. */
function whenStill(then: () => void): () => void {
  if (isStill()) {
    then();
    return () => {};
  }
  const callOff = choosing.subscribe(() => {
    if (!isStill()) return;
    callOff();
    then();
  });
  return callOff;
}

/** What is to be shown of something that comes by itself. A press finds it whole on the page or not at all. */
export function useWhenStill<T>(found: T): T {
  const [shown, setShown] = useState(found);
  useEffect(() => {
    let isPast = false;
    // Outside of the effect, as React flushes nothing within one; a microtask lets no press in between.
    const show = () => queueMicrotask(() => isPast || flushSync(() => setShown(() => found)));
    const callOff = whenStill(show);
    return () => {
      isPast = true;
      callOff();
    };
  }, [found]);
  return shown;
}

function isStill(): boolean {
  const { isListOpen, isPressed } = choosing.getState();
  return !isListOpen && !isPressed;
}

/** What stands in a field goes into the loop when the field is left: before the loop is run or exported. */
export function leaveField(): void {
  const field = document.activeElement;
  if (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) field.blur();
}

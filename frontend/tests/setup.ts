class ResizeObserverStub {
  observe() {}
  unobserve() {}
  disconnect() {}
}
globalThis.ResizeObserver ??= ResizeObserverStub as unknown as typeof ResizeObserver;

globalThis.matchMedia ??= ((query: string) => ({
  matches: false,
  media: query,
  addEventListener() {},
  removeEventListener() {},
})) as unknown as typeof matchMedia;

if (typeof Element !== "undefined") {
  Element.prototype.scrollIntoView ??= () => {};
  Element.prototype.hasPointerCapture ??= () => false;
  Element.prototype.releasePointerCapture ??= () => {};
}

// jsdom compares each element with every rule of a style sheet, and each control with every label,
// whenever a query asks; what tests read of both is in the elements.
if (typeof Element !== "undefined") {
  const LEFT_OUT = new Set(["HEAD", "SCRIPT", "STYLE", "TEMPLATE"]);
  const styleOf = (element: Element | null) => (element as HTMLElement | null)?.style;

  function styleValue(element: Element, name: string): string {
    if (name === "visibility") {
      let at: Element | null = element;
      while (at && !styleOf(at)?.visibility) at = at.parentElement;
      return styleOf(at)?.visibility || "visible";
    }
    const own = styleOf(element)?.getPropertyValue(name);
    if (own || name !== "display") return own ?? "";
    return LEFT_OUT.has(element.tagName) || element.hasAttribute("hidden") ? "none" : "block";
  }

  const kebab = (name: string) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  window.getComputedStyle = ((element: Element) =>
    new Proxy(
      {},
      {
        get: (_, name) =>
          name === "getPropertyValue"
            ? (asked: string) => styleValue(element, asked)
            : styleValue(element, kebab(String(name))),
      },
    )) as typeof window.getComputedStyle;

  function labelsOf(this: HTMLElement): HTMLLabelElement[] {
    const named = this.id ? this.ownerDocument.querySelectorAll("label[for]") : [];
    const around = this.closest("label");
    const labels = [...named].filter((label) => label.getAttribute("for") === this.id);
    if (around && around.htmlFor === "" && around.control === this) labels.push(around);
    return labels as HTMLLabelElement[];
  }
  for (const control of [
    HTMLButtonElement,
    HTMLInputElement,
    HTMLSelectElement,
    HTMLTextAreaElement,
    HTMLOutputElement,
  ])
    Object.defineProperty(control.prototype, "labels", { get: labelsOf, configurable: true });
}

export {};

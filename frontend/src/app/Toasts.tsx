import { CircleAlert, CircleCheck } from "lucide-react";
import { useEffect, useState } from "react";
import { dismissToast, type Toast, useToasts } from "@/session/toast";
import { Button } from "@/ui/Button";

const LOOK = {
  told: null,
  success: <CircleCheck size={16} className="shrink-0 text-success" aria-hidden="true" />,
  error: <CircleAlert size={16} className="shrink-0 text-error" aria-hidden="true" />,
} as const;

/** Where messages appear. None goes while one is pointed at or has the focus. */
export function Toasts() {
  const toasts = useToasts();
  const [isHeld, setHeld] = useState(false);
  const hold = () => setHeld(true);
  const release = () => setHeld(false);
  // What is gone holds nothing: a message that leaves says no goodbye to the pointer.
  if (isHeld && toasts.length === 0) setHeld(false);
  return (
    <section aria-label="Notifications" aria-live="polite" aria-relevant="additions text">
      <ol
        className="toasts"
        onPointerEnter={hold}
        onPointerLeave={release}
        onFocus={hold}
        onBlur={release}
      >
        {toasts.map((toast) => (
          <Message key={toast.id} toast={toast} isHeld={isHeld} />
        ))}
      </ol>
    </section>
  );
}

function Message({ toast, isHeld }: { toast: Toast; isHeld: boolean }) {
  const { id, kind, text, description, action, duration, time } = toast;
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is said anew begins anew
  useEffect(() => {
    if (isHeld) return;
    const timer = setTimeout(() => dismissToast(id), duration);
    return () => clearTimeout(timer);
  }, [id, duration, time, isHeld]);
  return (
    <li className="toast">
      {LOOK[kind]}
      <div className="min-w-0 flex-1 wrap-anywhere">
        <p className="font-medium">{text}</p>
        {description ? <p className="text-muted">{description}</p> : null}
      </div>
      {action ? (
        <Button
          size="small"
          onClick={() => {
            action.onClick();
            dismissToast(id);
          }}
        >
          {action.label}
        </Button>
      ) : null}
    </li>
  );
}

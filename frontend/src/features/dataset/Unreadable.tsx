import { errorMessage } from "@/api/client";

export function Unreadable({ error }: { error: unknown }) {
  return (
    <p role="status" className="shrink-0 bg-warning-soft px-4 py-1.5 text-warning text-xs">
      From the last valid state. {errorMessage(error)}
    </p>
  );
}

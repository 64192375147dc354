export function OfBefore() {
  return (
    <span
      role="status"
      className="text-warning text-xs"
      title="The loop has errors. Memory and time are those of its last valid state."
    >
      last valid state
    </span>
  );
}

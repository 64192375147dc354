/** Beside numbers of a loop that cannot be read any more. */
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

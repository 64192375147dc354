/** Beside numbers of a loop that cannot be read any more. */
export function OfBefore() {
  return (
    <span
      role="status"
      className="text-warning text-xs"
      title="The loop has errors. Memory and time are those of its last state that could be read."
    >
      last readable state
    </span>
  );
}

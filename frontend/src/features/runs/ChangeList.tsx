import type { SpecChange } from "@/api/types";
import { RichText } from "@/ui/RichText";

/** What differs between two loops, a line each, as the service says it. */
export function ChangeList({ label, changes }: { label: string; changes: readonly SpecChange[] }) {
  return (
    <ul aria-label={label} className="flex flex-col gap-1 text-xs">
      {changes.map((change) => (
        <li key={change.path} className="wrap-anywhere rounded-1 bg-sunken px-2 py-1">
          <RichText text={change.words} />
        </li>
      ))}
    </ul>
  );
}

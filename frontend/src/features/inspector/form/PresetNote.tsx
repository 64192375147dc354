import { RichText } from "@/ui/RichText";

/** What a chosen preset does, with its formula. */
export function PresetNote({ help, formula }: { help: string; formula: string }) {
  return (
    <div className="py-1 text-muted text-xs">
      {help ? (
        <p>
          <RichText text={help} />
        </p>
      ) : null}
      {formula ? (
        <p className="mt-1 overflow-x-auto rounded-1 bg-sunken px-2 py-1 font-mono text-2xs">
          {formula}
        </p>
      ) : null}
    </div>
  );
}

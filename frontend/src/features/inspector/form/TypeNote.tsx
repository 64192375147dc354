import { RichText } from "@/ui/RichText";

/** What the chosen type means, in its own words. */
export function TypeNote({ text }: { text: string }) {
  return text ? (
    <p className="py-1 text-muted text-xs">
      <RichText text={text} />
    </p>
  ) : null;
}

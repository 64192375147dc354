import { formatAgo } from "@/lib/format";

/** How long ago something was; the moment itself for who asks, and for other programs. */
export function Ago({ at }: { at: string | null | undefined }) {
  return (
    <time dateTime={at ?? undefined} title={at ? new Date(at).toLocaleString() : undefined}>
      {formatAgo(at)}
    </time>
  );
}

import { formatAgo } from "@/lib/format";

export function Ago({ at }: { at: string | null | undefined }) {
  return (
    <time dateTime={at ?? undefined} title={at ? new Date(at).toLocaleString() : undefined}>
      {formatAgo(at)}
    </time>
  );
}

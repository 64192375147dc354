import { Copy } from "lucide-react";
import { toast } from "sonner";
import type { SampleRow } from "@/api/types";
import { formatName } from "@/lib/format";
import { Button } from "@/ui/Button";
import { sampleText } from "./sampleText";

const TEXTS = ["prompt", "completion", "target"];

/** Told by the table already. */
const IN_TABLE = { seq: true, step: true, node: true, reward: true, advantage: true, scores: true };

/** A sample in full. */
export function SampleDetail({ row }: { row: SampleRow }) {
  const rest = Object.entries(row).filter(
    ([name, value]) => !(name in IN_TABLE) && !TEXTS.includes(name) && value !== null,
  );
  const copy = () => {
    navigator.clipboard.writeText(JSON.stringify(row, null, 2)).then(
      () => toast("Copied the sample"),
      () => toast.error("The browser blocked access to the clipboard."),
    );
  };
  return (
    <div className="flex flex-col gap-3">
      <div className="grid gap-3 lg:grid-cols-2">
        {TEXTS.filter((name) => row[name] !== undefined && row[name] !== null).map((name) => (
          <section key={name} className="min-w-0">
            <h2 className="pb-1 text-muted text-xs">{formatName(name)}</h2>
            <pre className="max-h-72 overflow-auto whitespace-pre-wrap break-words rounded-2 border border-line bg-surface p-2 font-mono text-xs">
              {sampleText(row[name])}
            </pre>
          </section>
        ))}
      </div>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1 text-muted text-xs">
        {rest.map(([name, value]) => (
          <span key={name}>
            {formatName(name)}: <span className="font-mono text-text">{sampleText(value)}</span>
          </span>
        ))}
        <span className="flex-1" />
        <Button size="small" look="quiet" icon={<Copy size={12} />} onClick={copy}>
          Copy as JSON
        </Button>
      </div>
    </div>
  );
}

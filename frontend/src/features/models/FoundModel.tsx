import { Download, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import type { Bodies } from "@/api/types";
import { formatBytes, formatCount } from "@/lib/format";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import type { UsedHub } from "./useHub";

interface FoundModelProps {
  model: Bodies["HubModel"];
  hub: UsedHub;
}

export function FoundModel({ model, hub }: FoundModelProps) {
  const isWhole = hub.query.data?.models.some(
    ({ name, place, missing }) => name === model.id && place === "cache" && missing === null,
  );
  const isRunning = hub.query.data?.downloads.some(
    ({ id, kind, state }) => id === model.id && kind === "model" && state === "running",
  );
  return (
    <article aria-label={model.id} className="px-4 py-3">
      <div className="mb-2 flex items-start gap-3">
        <h3 className="min-w-0 flex-1 font-semibold wrap-anywhere">{model.id}</h3>
        {isWhole && hub.node !== undefined ? (
          <Button size="small" look="primary" onClick={() => hub.use(model.id)}>
            Use in {hub.node}
          </Button>
        ) : null}
        {isWhole || model.refusal !== null ? null : (
          <Button
            size="small"
            look="primary"
            icon={<Download size={13} />}
            disabled={isRunning || hub.isBusy}
            onClick={() => hub.download({ kind: "model", id: model.id })}
          >
            {model.bytes_here > 0 ? "Continue" : "Download"}
          </Button>
        )}
      </div>
      {model.refusal === null ? null : (
        <p className="mb-2 flex items-start gap-1.5 text-warning text-xs">
          <TriangleAlert size={13} className="mt-0.5 shrink-0" aria-hidden="true" />
          coloop does not load it: {model.refusal}.
        </p>
      )}
      <dl className="grid max-w-2xl grid-cols-[auto_1fr] gap-x-5 gap-y-1 text-xs">
        <Fact label="Licence">
          {model.license ?? "not stated"}
          {model.is_gated ? <Badge tone="warning">gated</Badge> : null}
        </Fact>
        {model.parameters === null ? null : (
          <Fact label="Parameters">
            {formatCount(model.parameters)}
            {model.active !== null && model.active < model.parameters
              ? `, ${formatCount(model.active)} of them active for a token`
              : null}
          </Fact>
        )}
        <Fact label="Download">
          {formatBytes(model.bytes)} in {model.files} files
          {model.bytes_here > 0 && !isWhole ? `, ${formatBytes(model.bytes_here)} are here` : null}
          {isWhole ? <Badge tone="success">here</Badge> : null}
        </Fact>
        {model.fits.map(({ hardware, is_here: isHere, ways }) => (
          <Fact key={`${hardware} ${isHere}`} label={isHere ? "This machine" : hardware}>
            {ways.map((fit) => (
              <Verdict key={fit.way} fit={fit} />
            ))}
          </Fact>
        ))}
      </dl>
      {model.fits.length === 0 ? null : (
        <p className="mt-2 text-2xs text-faint">
          Memory by the estimate, for GRPO with eight completions of up to 512 tokens to each of
          four prompts.
        </p>
      )}
    </article>
  );
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-muted">{label}</dt>
      <dd className="tabular flex flex-wrap items-center gap-x-2 gap-y-1">{children}</dd>
    </>
  );
}

const WAYS: Record<string, string> = { full: "all weights", lora: "LoRA adapter" };

function Verdict({ fit }: { fit: Bodies["Fit"] }) {
  const { fits, peak_bytes: peak, usable_bytes: usable } = fit;
  const words = fits === null ? "not known" : fits ? "fits" : "does not fit";
  return (
    <span className="flex items-center gap-1.5" title={fit.reason ?? undefined}>
      <Badge tone={fits === null ? "neutral" : fits ? "success" : "error"}>
        {WAYS[fit.way] ?? fit.way}: {words}
      </Badge>
      {peak === null ? null : (
        <span className="text-muted">
          {formatBytes(peak)} of {formatBytes(usable)}
        </span>
      )}
    </span>
  );
}

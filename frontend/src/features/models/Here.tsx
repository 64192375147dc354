import { Box, Database, HardDrive, Package } from "lucide-react";
import type { Bodies } from "@/api/types";
import { formatBytes, formatCount } from "@/lib/format";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Answer } from "@/ui/States";
import { DownloadRow } from "./DownloadRow";
import type { UsedHub } from "./useHub";

interface HereProps {
  hub: UsedHub;
  onLook: (id: string) => void;
}

export function Here({ hub, onLook }: HereProps) {
  return (
    <section aria-label="On this machine" className="min-h-0 overflow-y-auto" tabIndex={0}>
      <h3 className="sticky top-0 z-10 flex items-center gap-2 border-line border-b bg-surface px-4 py-2 text-xs">
        <b className="whitespace-nowrap">On this machine</b>
        {hub.node === undefined ? null : (
          <span className="truncate text-muted">
            “Use” sets the model of <b className="font-medium text-text">{hub.node}</b>
          </span>
        )}
      </h3>
      <Answer
        query={hub.query}
        loading="Looking for models"
        failed="The models could not be listed"
      >
        {({ models, datasets, downloads }) => (
          <ul className="divide-y divide-line">
            {downloads
              .filter(({ state, paths }) => state !== "finished" || paths.length > 0)
              .map((download) => (
                <DownloadRow key={download.key} download={download} hub={hub} />
              ))}
            {models.map((model) => (
              <ModelRow
                key={`${model.place} ${model.name}`}
                model={model}
                hub={hub}
                onLook={onLook}
              />
            ))}
            {datasets.map((dataset) => (
              <li key={dataset.name} className="flex items-center gap-3 px-4 py-2">
                <Database size={15} className="shrink-0 text-faint" aria-hidden="true" />
                <span className="min-w-0 flex-1 truncate" title={dataset.name}>
                  {dataset.name}
                </span>
                <span className="tabular text-muted text-xs">{formatBytes(dataset.bytes)}</span>
                <Badge>dataset</Badge>
              </li>
            ))}
          </ul>
        )}
      </Answer>
    </section>
  );
}

const PLACES = {
  folder: { Icon: HardDrive, title: "In the folder of models" },
  cache: { Icon: Box, title: "Downloaded from the hub" },
  package: { Icon: Package, title: "Made of a Python package" },
} as const;

interface ModelRowProps extends HereProps {
  model: Bodies["ModelHere"];
}

function ModelRow({ model, hub, onLook }: ModelRowProps) {
  const { Icon, title } = PLACES[model.place];
  return (
    <li className="flex items-center gap-3 px-4 py-2">
      <span title={title} className="shrink-0 text-faint">
        <Icon size={15} aria-label={title} />
      </span>
      <span className="min-w-0 flex-1">
        <span className="block truncate" title={model.name}>
          {model.name}
        </span>
        <span className="tabular block text-muted text-xs">
          {[
            model.parameters === null ? null : `${formatCount(model.parameters)} parameters`,
            model.bytes === 0 ? null : formatBytes(model.bytes),
          ]
            .filter((part) => part !== null)
            .join(", ")}
        </span>
      </span>
      <Act model={model} hub={hub} onLook={onLook} />
    </li>
  );
}

function Act({ model, hub, onLook }: ModelRowProps) {
  if (model.place === "package") {
    return (
      <code className="rounded-1 bg-sunken px-1.5 py-0.5 text-2xs text-muted">
        {model.is_installed ? "" : "pip install 'coloop[real]', "}coloop models add {model.name}
      </code>
    );
  }
  if (model.missing !== null) {
    return (
      <>
        <Badge tone="warning" title={`Missing: ${model.missing}`}>
          not whole
        </Badge>
        {model.place === "cache" ? (
          <Button size="small" onClick={() => onLook(model.name)}>
            Look
          </Button>
        ) : null}
      </>
    );
  }
  if (hub.node === undefined) return null;
  return (
    <Button size="small" aria-label={`Use ${model.name}`} onClick={() => hub.use(model.name)}>
      Use
    </Button>
  );
}

import { Download } from "lucide-react";
import type { Bodies } from "@/api/types";
import { formatBytes } from "@/lib/format";
import { Button } from "@/ui/Button";
import { RichText } from "@/ui/RichText";
import type { UsedHub } from "./useHub";

interface DownloadRowProps {
  download: Bodies["Download"];
  hub: UsedHub;
}

export function DownloadRow({ download, hub }: DownloadRowProps) {
  const { id, state, done, total, message, paths } = download;
  const share = total === 0 ? 0 : done / total;
  const again = () => hub.download({ kind: download.kind, id });
  return (
    <li className="px-4 py-2">
      <div className="flex items-center gap-3">
        <Download size={15} className="shrink-0 text-accent" aria-hidden="true" />
        <span className="min-w-0 flex-1 truncate" title={id}>
          {id}
        </span>
        <span className="tabular text-muted text-xs" role="status">
          {state === "running"
            ? total === 0
              ? "starting"
              : `${formatBytes(done)} of ${formatBytes(total)}`
            : state}
        </span>
        {state === "running" ? (
          <Button
            size="small"
            aria-label={`Cancel the download of ${id}`}
            onClick={() => hub.cancel(download.key)}
          >
            Cancel
          </Button>
        ) : null}
        {state === "cancelled" || state === "failed" ? (
          <Button size="small" aria-label={`Continue the download of ${id}`} onClick={again}>
            Continue
          </Button>
        ) : null}
        {hub.isReadonly
          ? null
          : paths.map((path) => (
              <Button
                key={path}
                size="small"
                title={path}
                aria-label={`Add ${path} as a dataset`}
                onClick={() => hub.add(path)}
              >
                Add as dataset
              </Button>
            ))}
      </div>
      {state === "running" ? (
        <progress
          className="mt-1.5 block h-1 w-full accent-accent"
          aria-label={`Download of ${id}`}
          max={1}
          {...(total === 0 ? {} : { value: share })}
        />
      ) : null}
      {message === null ? null : (
        <p role="alert" className="mt-1 text-error text-xs">
          <RichText text={message} />
        </p>
      )}
    </li>
  );
}

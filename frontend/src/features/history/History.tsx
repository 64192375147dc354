import { useQueryClient } from "@tanstack/react-query";
import { RotateCcw } from "lucide-react";
import { useState } from "react";
import { toast } from "sonner";
import { errorMessage } from "@/api/client";
import { labelVersion, restoreVersion } from "@/api/routes";
import { useOpenLoop, useSync } from "@/document/context";
import { Button } from "@/ui/Button";
import { Failed, Loading } from "@/ui/States";
import { useVersions } from "./useVersions";
import { VersionChanges } from "./VersionChanges";
import { VersionLabel } from "./VersionLabel";
import { VersionRow } from "./VersionRow";

interface HistoryProps {
  loopId: string;
  onRestored: () => void;
}

/** Versions on the left; on the right what changed since the chosen one, its name and the way back to it. */
export function History({ loopId, onRestored }: HistoryProps) {
  const { sync } = useOpenLoop();
  const revision = useSync((state) => state.revision);
  const client = useQueryClient();
  const versions = useVersions(loopId, revision);
  const [chosenNumber, choose] = useState<number | null>(null);

  if (versions.isPending) return <Loading label="Loading the history" rows={6} />;
  if (versions.isError)
    return <Failed title="The history could not be loaded" error={versions.error} />;
  const all = versions.data.pages.flatMap((page) => page.items);
  const newest = all[0];
  const chosen = all.find((one) => one.version === chosenNumber) ?? all[1] ?? newest;
  if (!newest || !chosen) return null;

  const attempt = async (work: () => Promise<unknown>) => {
    try {
      await work();
      await client.invalidateQueries({ queryKey: ["versions", loopId] });
    } catch (error) {
      toast.error(errorMessage(error));
    }
  };
  const restore = () =>
    attempt(async () => {
      const loop = await restoreVersion(loopId, chosen.version, revision);
      sync?.adopt(loop, `Restore version ${chosen.version}`);
      toast.success(`Version ${chosen.version} is back. Undo brings back what was there.`);
      onRestored();
    });
  return (
    <div className="grid h-[60vh] grid-cols-[18rem_minmax(0,1fr)] overflow-hidden rounded-2 border border-line">
      <div className="overflow-y-auto border-line border-r">
        <ul aria-label="Versions">
          {all.map((version) => (
            <VersionRow
              key={version.version}
              version={version}
              isNewest={version === newest}
              isChosen={version === chosen}
              onChoose={() => choose(version.version)}
            />
          ))}
        </ul>
        {versions.hasNextPage ? (
          <Button className="m-2" onClick={() => void versions.fetchNextPage()}>
            Older versions
          </Button>
        ) : null}
      </div>
      <section aria-label={`Version ${chosen.version}`} className="flex min-h-0 min-w-0 flex-col">
        <header className="flex items-center gap-2 border-line border-b p-2">
          <VersionLabel
            key={chosen.version}
            version={chosen}
            onLabel={(label) => void attempt(() => labelVersion(loopId, chosen.version, label))}
          />
          <Button
            look="primary"
            icon={<RotateCcw size={14} />}
            disabled={chosen === newest}
            onClick={() => void restore()}
          >
            Restore
          </Button>
        </header>
        <div className="min-h-0 flex-1 overflow-y-auto">
          <VersionChanges loopId={loopId} version={chosen} revision={revision} />
        </div>
      </section>
    </div>
  );
}

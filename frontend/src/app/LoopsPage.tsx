import { useQuery } from "@tanstack/react-query";
import { FilePlus2, FileUp, Workflow } from "lucide-react";
import { fetchLoops } from "@/api/routes";
import { LoopRow } from "@/features/loops/LoopRow";
import { LoopSearch } from "@/features/loops/LoopSearch";
import { NewLoopDialog } from "@/features/loops/NewLoopDialog";
import { useImportDialog } from "@/features/loops/useImport";
import { Gallery } from "@/features/presets/Gallery";
import { showDialog } from "@/state/dialogs";
import { useLoopPresets } from "@/state/queries";
import { Button } from "@/ui/Button";
import { Answer } from "@/ui/States";
import { PageShell } from "./PageShell";

export function LoopsPage() {
  const loops = useQuery({ queryKey: ["loops"], queryFn: fetchLoops });
  const presets = useLoopPresets();
  const here = presets.data?.filter((preset) => preset.runnable_here).length;
  const importing = useImportDialog();

  return (
    <PageShell
      title="Loops"
      actions={
        <>
          {importing.input}
          <Button icon={<FileUp size={14} />} onClick={importing.ask}>
            Import
          </Button>
          <Button
            look="primary"
            icon={<FilePlus2 size={14} />}
            onClick={() => showDialog("newLoop")}
          >
            New loop
          </Button>
        </>
      }
    >
      <section aria-label="Your loops" className="rounded-3 border border-line bg-surface">
        {loops.data && loops.data.length > 0 ? <LoopSearch /> : null}
        <Answer query={loops} loading="Loading the loops" failed="The loops could not be loaded">
          {(all) => (
            <ul>
              {all.map((loop) => (
                <LoopRow key={loop.id} loop={loop} />
              ))}
            </ul>
          )}
        </Answer>
        {loops.data?.length === 0 ? (
          <div className="flex items-center gap-4 p-4">
            <Workflow size={24} className="shrink-0 text-faint" aria-hidden="true" />
            <div className="flex-1 text-sm">
              <p className="font-medium">No loops yet</p>
              <p className="text-muted">
                Open a preset below; your first change saves it as your own loop. You can also drop
                a YAML file anywhere on the page.
              </p>
            </div>
            <Button icon={<FilePlus2 size={14} />} onClick={() => showDialog("newLoop")}>
              Start with a small loop
            </Button>
          </div>
        ) : null}
      </section>
      <h2 className="mt-8 font-semibold text-lg">Start from a loop that works</h2>
      <p className="mb-3 text-muted text-sm">
        Open one, press Run, then change it.{" "}
        {presets.data
          ? `${here} of ${presets.data.length} run on this machine as they are; the others name the GPUs they need.`
          : ""}
      </p>
      <Gallery />
      <NewLoopDialog />
    </PageShell>
  );
}

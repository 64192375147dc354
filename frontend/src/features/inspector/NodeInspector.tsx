import { Copy, Trash2 } from "lucide-react";
import { readSchema } from "@/catalog/schema";
import { removeItems } from "@/document/commands/removeItems";
import { useDocument, useNodeColor, useOpenLoop } from "@/document/context";
import { useMode } from "@/document/useMode";
import { formatPlural } from "@/lib/format";
import { showKeys } from "@/session/actions";
import { useSelection } from "@/session/selection";
import { useClipboard } from "@/session/useClipboard";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import { KindIcon } from "@/ui/KindIcon";
import { LearnsButton } from "@/ui/LearnsButton";
import { RichText } from "@/ui/RichText";
import { BatchLadders } from "./BatchLadders";
import { Connections } from "./Connections";
import { FieldProblems } from "./form/FieldProblems";
import { FormContext } from "./form/FormContext";
import { FormFields } from "./form/FormFields";
import { InspectorHeader } from "./InspectorHeader";
import { NodeName } from "./NodeName";
import { useNodeForm } from "./useNodeForm";
import { type OtherModes, useOtherModes } from "./useOtherModes";

/** Everything about one node: name, fields from its schema, connections. */
export function NodeInspector({ id }: { id: string }) {
  const { catalog, store } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[id]);
  const isReadonly = useDocument((state) => state.isReadonly);
  const others = useOtherModes(id);
  const form = useNodeForm(id, others.hidden);
  const color = useNodeColor(id);
  const { duplicate } = useClipboard();
  if (!data) return null;
  const kind = catalog.kinds[data.kind];
  const field = kind ? readSchema(kind.schema) : null;

  return (
    <>
      <InspectorHeader
        icon={
          <span
            className="loop-node-icon"
            style={
              {
                "--node-color": color,
              } as React.CSSProperties
            }
          >
            <KindIcon name={kind?.icon} />
          </span>
        }
        title={<NodeName id={id} />}
        subtitle={kind?.title ?? data.kind}
        help={kind?.help}
        actions={
          isReadonly ? null : (
            <>
              <IconButton
                label="Duplicate"
                keys={showKeys("mod+d")}
                size="small"
                onClick={() => duplicate([id])}
              >
                <Copy size={14} />
              </IconButton>
              <IconButton
                label="Delete"
                keys={showKeys("backspace")}
                size="small"
                onClick={() => {
                  store
                    .getState()
                    .dispatch(removeItems, { nodes: [id], edges: [] }, { label: `Delete ${id}` });
                  useSelection.getState().clear();
                }}
              >
                <Trash2 size={14} />
              </IconButton>
            </>
          )
        }
      />
      <div className="min-h-0 flex-1 overflow-y-auto px-4 pt-1 pb-2">
        {data.algorithm ? <LearnsButton node={id} /> : null}
        {kind && !kind.runnable ? (
          <Badge tone="info" className="mb-1">
            Can be drawn and checked; not yet runnable
          </Badge>
        ) : null}
        {form.lockReason ? <p className="pb-2 text-muted text-xs">{form.lockReason}</p> : null}
        <FieldProblems problems={form.diagnostics.filter((problem) => !problem.field)} />
        <BatchLadders node={id} />
        <FormContext value={form}>
          {field?.shape === "object" ? (
            <FormFields field={field} value={data} without={["kind"]} />
          ) : (
            <p className="text-error text-sm">
              This server does not know the kind “{data.kind}”. The node is kept as it is.
            </p>
          )}
        </FormContext>
        <OtherModesNote {...others} />
        <Connections node={id} />
      </div>
    </>
  );
}

/** Says what the form leaves to other modes, above all what of it is set, and shows it. */
function OtherModesNote({ isAny, set, isShown, show }: OtherModes) {
  const mode = useMode();
  if (!isAny) return null;
  const names = set.map((path) => `\`${path}\``).join(", ");
  return (
    <div className="flex items-start gap-2 border-line border-t py-1.5 text-muted text-xs">
      <p className="min-w-0 flex-1 py-1">
        {isShown ? (
          "Settings of all modes are shown."
        ) : set.length === 0 ? (
          "Settings of other modes are left out."
        ) : (
          <RichText
            text={`${formatPlural(set.length, "setting")} of other modes ${set.length === 1 ? "is" : "are"} set: ${names}.`}
          />
        )}
      </p>
      <Button size="small" look="quiet" onClick={() => show(!isShown)}>
        {isShown ? `Only ${mode.title.toLowerCase()}` : "Show all"}
      </Button>
    </div>
  );
}

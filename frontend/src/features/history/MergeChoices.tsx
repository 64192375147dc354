import { useMemo, useState } from "react";
import { chosenVariant } from "@/catalog/shapes";
import { fieldAt } from "@/document/fieldAt";
import { formatPlural } from "@/lib/format";
import { useOpenLoop, useSync } from "@/state/document/context";
import {
  type Collision,
  type Difference,
  differenceText,
  type IsOneThing,
  type Side,
  valueText,
} from "@/state/sync/merge";
import { useAttempt } from "@/state/useAttempt";
import { Button } from "@/ui/Button";
import { Segmented } from "@/ui/Segmented";

export function MergeChoices() {
  const { sync, store, catalog } = useOpenLoop();
  const conflict = useSync((state) => state.conflict);
  const [choices, setChoices] = useState<Record<string, Side>>({});
  const { isBusy, attempt } = useAttempt();
  const merge = useMemo(() => {
    const { document } = store.getState();
    const isOneThing: IsOneThing = (path, mine, theirs) => {
      const field = fieldAt(catalog, document, path);
      if (field?.shape !== "tagged" && field?.shape !== "variants") return false;
      return chosenVariant(field, mine)?.key !== chosenVariant(field, theirs)?.key;
    };
    return conflict ? (sync?.merge(isOneThing) ?? null) : null;
  }, [sync, store, catalog, conflict]);
  if (!sync || !merge) return null;
  const open = merge.collisions.filter(({ key }) => !choices[key]).length;

  const keepBoth = () => attempt(() => sync.keepBoth(merge.decide(choices)));
  return (
    <div className="mb-3 flex flex-col gap-3">
      <div className="grid gap-3 sm:grid-cols-2">
        <Changes title="You changed" differences={merge.mine} />
        <Changes title="The other version changed" differences={merge.theirs} />
      </div>
      {merge.collisions.length > 0 ? (
        <section aria-label="Changed by both" className="rounded-2 border border-line">
          <h3 className="border-line border-b px-3 py-2 font-medium text-xs">
            Changed by both: choose
          </h3>
          <ul className="max-h-56 overflow-y-auto">
            {merge.collisions.map((collision) => (
              <Choice
                key={collision.key}
                collision={collision}
                chosen={choices[collision.key]}
                onChoose={(side) => setChoices({ ...choices, [collision.key]: side })}
              />
            ))}
          </ul>
        </section>
      ) : null}
      <div className="flex items-center gap-3">
        <p className="min-w-0 flex-1 text-muted text-xs">
          {open > 0
            ? `${formatPlural(open, "place")} left to resolve.`
            : "Everything else merges without conflict; one undo reverts it."}
        </p>
        <Button look="primary" disabled={isBusy || open > 0} onClick={() => void keepBoth()}>
          Keep both
        </Button>
      </div>
    </div>
  );
}

function Changes({ title, differences }: { title: string; differences: readonly Difference[] }) {
  const { catalog } = useOpenLoop();
  return (
    <section aria-label={title} className="min-w-0 rounded-2 border border-line">
      <h3 className="border-line border-b px-3 py-2 font-medium text-xs">{title}</h3>
      <ul className="max-h-40 overflow-y-auto px-3 py-1 text-xs">
        {differences.length === 0 ? <li className="py-1 text-muted">Only positions.</li> : null}
        {differences.map((one) => {
          const { where, what } = differenceText(catalog, one);
          return (
            <li key={one.path.join(".")} className="break-words py-0.5">
              <b className="font-medium">{where}</b> <span className="text-muted">{what}</span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

interface ChoiceProps {
  collision: Collision;
  chosen: Side | undefined;
  onChoose: (side: Side) => void;
}

function Choice({ collision, chosen, onChoose }: ChoiceProps) {
  const { mine, theirs, key, path } = collision;
  const [head, where, ...inside] = path.map(String);
  const isOfNode = head === "nodes" && where !== undefined;
  return (
    <li className="flex flex-wrap items-center gap-2 border-line border-b px-3 py-2 text-xs last:border-b-0">
      <span className="min-w-0 flex-1 break-words">
        {isOfNode ? (
          <>
            <b className="font-medium">{where}</b> {inside.join(".")}
          </>
        ) : (
          <b className="font-medium">{key}</b>
        )}
        <span className="block text-muted">
          Mine: {shown(mine)} · Theirs: {shown(theirs)}
        </span>
      </span>
      <Segmented<Side | "">
        label={`Which version of ${key}`}
        value={chosen ?? ""}
        options={[
          { value: "mine", label: "Mine" },
          { value: "theirs", label: "Theirs" },
        ]}
        onChange={(side) => {
          if (side !== "") onChoose(side);
        }}
      />
    </li>
  );
}

function shown(value: Collision["mine"]): string {
  return value === undefined ? "removed" : valueText(value);
}

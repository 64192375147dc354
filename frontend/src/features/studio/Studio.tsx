import { Command } from "cmdk";
import { Plus, Star } from "lucide-react";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { useSearch } from "wouter";
import { preparePreviews } from "@/api/routes";
import type { Catalog, ScoredRows } from "@/api/types";
import { type ScorerChoice, scorerChoices } from "@/catalog/scorers";
import { accepts, canConnect, inputPort } from "@/document/canConnect";
import { portText } from "@/document/edges";
import { freeName } from "@/document/names";
import {
  type Payee,
  type PayingEdge,
  payees,
  payingEdges,
  rounded,
  weighed,
  weightOf,
} from "@/document/rewards";
import type { Edge, LoopDocument } from "@/document/types";
import { freePlace } from "@/graph/freePlace";
import type { Colors } from "@/lib/colors";
import { kindColor } from "@/lib/colors";
import { connect, setWeights } from "@/state/commands/edges";
import { addNode } from "@/state/commands/nodes";
import { useCatalog, useChartColors, useDocument, useOpenLoop } from "@/state/document/context";
import type { DocumentStore } from "@/state/document/store";
import { usePreview } from "@/state/usePreview";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { KindIcon } from "@/ui/KindIcon";
import { LabelledSelect } from "@/ui/LabelledSelect";
import { RichText } from "@/ui/RichText";
import { Empty } from "@/ui/States";
import { Distributions } from "./Distributions";
import { PreviewPane } from "./PreviewPane";
import { SourceEditor } from "./SourceEditor";
import { SourceRow } from "./SourceRow";
import { TotalBar } from "./TotalBar";
import { tableRows } from "./table";

interface StudioProps {
  settings: (node: string) => ReactNode;
}

export function Studio({ settings }: StudioProps) {
  const catalog = useCatalog();
  const document = useDocument((state) => state.document);
  const all = useMemo(() => payees(catalog, document), [catalog, document]);
  const wanted = new URLSearchParams(useSearch()).get("source");
  const [chosen, setChosen] = useState<string | null>(null);
  const payee =
    all.find(({ name }) => name === chosen) ??
    all.find(({ name }) => payingEdges(document, name).some(({ node }) => node === wanted)) ??
    all[0];
  useEffect(() => {
    // The first preview is not to wait until the engine is loaded; without it, it loads then.
    void preparePreviews().catch(() => {});
  }, []);
  if (payee === undefined) {
    return (
      <Empty icon={<Star size={24} />} title="No node learns from rewards">
        Add a node that generates and learns; its reward is composed here.
      </Empty>
    );
  }
  return (
    <Bench
      key={payee.name}
      payee={payee}
      payees={all}
      wanted={wanted}
      onPayee={setChosen}
      settings={settings}
    />
  );
}

interface BenchProps extends StudioProps {
  payee: Payee;
  payees: readonly Payee[];
  wanted: string | null;
  onPayee: (name: string) => void;
}

function Bench({ wanted, settings, ...learner }: BenchProps) {
  const { payee } = learner;
  const document = useDocument((state) => state.document);
  const edges = useMemo(() => payingEdges(document, payee.name), [document, payee.name]);
  const [chosen, setChosen] = useState<string | null>(wanted);
  const preview = usePreview<ScoredRows>();
  const { found, asked } = preview;
  const table = useMemo(() => (found ? tableRows(found, edges) : null), [found, edges]);
  const source = edges.find(({ node }) => node === chosen) ?? edges[0];
  const node = source?.node ?? null;
  const colors = useChartColors(edges.map(({ node }) => node));
  return (
    <div className="flex min-h-0 flex-1">
      <SourceList
        {...learner}
        edges={edges}
        found={found}
        colors={colors}
        chosen={node}
        onChoose={setChosen}
      />
      <div className="flex min-w-0 flex-1 flex-col">
        <SourceEditor
          key={node}
          node={node}
          color={colors[node ?? ""]}
          said={found?.sources.find(({ edge }) => edge === source?.name) ?? null}
          asked={asked}
          settings={settings}
        />
        <PreviewPane
          payee={payee}
          hasSources={edges.length > 0}
          colors={colors}
          preview={preview}
          table={table}
          onChoose={setChosen}
        />
      </div>
      <Distributions table={table} colors={colors} />
    </div>
  );
}

interface SourceListProps extends Pick<BenchProps, "payee" | "payees" | "onPayee"> {
  edges: readonly PayingEdge[];
  found: ScoredRows | null;
  colors: Colors;
  chosen: string | null;
  onChoose: (node: string) => void;
}

function SourceList(props: SourceListProps) {
  const { payee, payees, edges, found, colors, chosen, onPayee, onChoose } = props;
  const { store } = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const [isAdding, setAdding] = useState(false);
  const [keepsTotal, setKeepsTotal] = useState(false);
  const [locked, setLocked] = useState<ReadonlySet<string>>(new Set());
  const total = rounded(weightOf(edges));
  const scale = Math.max(1, ...edges.map(({ weight }) => Math.abs(weight)));

  const weigh = (key: string, weight: number) => {
    const weights = weighed(edges, key, weight, keepsTotal ? { total, locked } : null);
    store.dispatch(setWeights, { weights }, { group: `weigh ${payee.name} ${key}` });
  };
  const toggleLock = (key: string) => {
    const next = new Set(locked);
    if (!next.delete(key)) next.add(key);
    setLocked(next);
  };
  return (
    <aside
      aria-label="Sources"
      className="flex w-[264px] shrink-0 flex-col overflow-y-auto border-line border-r bg-surface xl:w-[312px]"
    >
      <div className="flex h-12 shrink-0 items-center justify-between gap-2 px-4">
        <h2 className="font-semibold text-base">Sources</h2>
        <Button
          size="small"
          icon={<Plus size={14} />}
          disabled={isReadonly}
          onClick={() => setAdding(true)}
        >
          Add source
        </Button>
      </div>
      {payees.length > 1 ? (
        <div className="border-line border-t px-4 py-2 text-muted text-xs">
          <LabelledSelect
            label="Learner"
            value={payee.name}
            options={payees.map(({ name }) => ({ value: name, label: name }))}
            onChange={onPayee}
          />
        </div>
      ) : null}
      {edges.length === 0 ? (
        <p className="border-line border-t p-4 text-muted text-sm">
          {payee.node} has no reward yet. Add a source: a built-in check, a model, or your own code.
        </p>
      ) : (
        <ul>
          {edges.map((edge) => (
            <SourceRow
              key={edge.key}
              edge={edge}
              color={colors[edge.node]}
              scale={scale}
              said={found?.sources.find((one) => one.edge === edge.name) ?? null}
              isChosen={edge.node === chosen}
              isLocked={locked.has(edge.key)}
              isReadonly={isReadonly}
              onChoose={() => onChoose(edge.node)}
              onLock={() => toggleLock(edge.key)}
              onWeigh={(weight) => weigh(edge.key, weight)}
            />
          ))}
        </ul>
      )}
      <TotalBar
        payee={payee}
        edges={edges}
        colors={colors}
        total={total}
        keepsTotal={keepsTotal}
        onKeepTotal={setKeepsTotal}
      />
      <Dialog
        title="Add a source"
        description={`Its score of a row is added to the reward of ${payee.node}, with an initial weight of 1.`}
        isOpen={isAdding}
        onClose={() => setAdding(false)}
      >
        <Choices
          payee={payee}
          onAdded={(node) => {
            onChoose(node);
            setAdding(false);
          }}
        />
      </Dialog>
    </aside>
  );
}

const GROUP =
  "[&_[cmdk-group-heading]]:px-2 [&_[cmdk-group-heading]]:py-1 [&_[cmdk-group-heading]]:text-muted [&_[cmdk-group-heading]]:text-xs";
const ITEM =
  "flex cursor-default items-start gap-2 rounded-2 px-2 py-1.5 text-sm data-[selected=true]:bg-hover";

interface ChoicesProps {
  payee: Payee;
  onAdded: (node: string) => void;
}

function Choices({ payee, onAdded }: ChoicesProps) {
  const catalog = useCatalog();
  const { store } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const type = scoresPort(catalog, document, payee);
  const choices = useMemo(() => scorerChoices(catalog, type), [catalog, type]);
  const present = useMemo(() => unconnected(catalog, document, payee), [catalog, document, payee]);
  const own = choices.filter(({ isCode }) => isCode);
  const built = choices.filter(({ isCode }) => !isCode);
  const add = (choice: ScorerChoice) => onAdded(newSource(catalog, store, payee, choice));
  return (
    <Command label="Sources to add" loop className="rounded-2 border border-line">
      <Command.Input
        autoFocus
        placeholder="Search: exact, length, python, model"
        className="h-10 w-full border-line border-b bg-transparent px-3 text-sm outline-none"
      />
      <Command.List className="max-h-[46vh] overflow-y-auto p-1">
        <Command.Empty className="p-3 text-muted text-sm">No source fits.</Command.Empty>
        {present.length > 0 ? (
          <Command.Group heading="In this loop" className={GROUP}>
            {present.map(({ node, from }) => (
              <Command.Item
                key={node}
                value={`in this loop ${node}`}
                className={ITEM}
                onSelect={() => {
                  const edge = { from, to: payee.name };
                  store.dispatch(connect, { edge }, { label: `Add reward ${node}` });
                  onAdded(node);
                }}
              >
                {node}
              </Command.Item>
            ))}
          </Command.Group>
        ) : null}
        {own.length > 0 ? <Group heading="Your own" choices={own} onSelect={add} /> : null}
        <Group heading="Built in, models and services" choices={built} onSelect={add} />
      </Command.List>
    </Command>
  );
}

interface GroupProps {
  heading: string;
  choices: readonly ScorerChoice[];
  onSelect: (choice: ScorerChoice) => void;
}

function Group({ heading, choices, onSelect }: GroupProps) {
  return (
    <Command.Group heading={heading} className={GROUP}>
      {choices.map((choice) => (
        <Command.Item
          key={`${choice.kind.kind} ${choice.name}`}
          value={`${choice.title} ${choice.name} ${choice.kind.title} ${choice.help}`}
          className={ITEM}
          style={{ "--node-color": kindColor(choice.kind) } as React.CSSProperties}
          onSelect={() => onSelect(choice)}
        >
          <span className="loop-node-icon mt-0.5 size-5 shrink-0">
            <KindIcon name={choice.kind.icon} size={13} />
          </span>
          <span className="min-w-0">
            <span className="block">
              {choice.title}{" "}
              <span className="text-muted text-xs">{choice.kind.title.toLowerCase()}</span>
            </span>
            <span className="block text-muted text-xs">
              <RichText text={choice.help} />
            </span>
          </span>
        </Command.Item>
      ))}
    </Command.Group>
  );
}

export function scoresPort(catalog: Catalog, document: LoopDocument, payee: Payee): string {
  return inputPort(catalog, document, payee)?.type ?? "";
}

/** Nodes of the loop that give what the learner takes and do not pay it yet, and from which port. */
export function unconnected(
  catalog: Catalog,
  document: LoopDocument,
  payee: Payee,
): { node: string; from: string }[] {
  return Object.entries(document.nodes).flatMap(([node, { kind }]) => {
    if (node === payee.node) return [];
    const port = catalog.kinds[kind]?.outputs.find(
      ({ name }) => canConnect(catalog, document, { node, port: name }, payee).ok,
    );
    return port ? [{ node, from: portText({ node, port: port.name }) }] : [];
  });
}

export function newSource(
  catalog: Catalog,
  store: DocumentStore,
  payee: Payee,
  choice: ScorerChoice,
): string {
  const { document } = store.getState();
  const id = freeName(choice.name, new Set(Object.keys(document.nodes)));
  const [x, y] = document.layout[payee.node] ?? [0, 0];
  const place = freePlace(catalog, document, choice.kind, { x: x + 320, y: y + 160 });
  store.dispatch(
    addNode,
    {
      id,
      data: { ...choice.data, kind: choice.kind.kind },
      position: [place.x, place.y],
      edges: edgesOf(catalog, document, payee, choice, id),
    },
    { label: `Add source ${id}` },
  );
  return id;
}

function edgesOf(
  catalog: Catalog,
  document: LoopDocument,
  payee: Payee,
  { kind }: ScorerChoice,
  id: string,
): Edge[] {
  const learner = catalog.kinds[document.nodes[payee.node]?.kind ?? ""];
  const read = kind.inputs
    .filter((input) => !input.teaching)
    .flatMap((input) => {
      const output = learner?.outputs.find(({ type }) => type === input.type);
      return output ? [{ from: `${payee.node}.${output.name}`, to: `${id}.${input.name}` }] : [];
    });
  const paid = scoresPort(catalog, document, payee);
  const gives = kind.outputs.find(({ type }) => accepts(catalog, paid, type));
  const pays = gives ? [{ from: `${id}.${gives.name}`, to: payee.name }] : [];
  return [...read.slice(0, 1), ...pays];
}

import {
  CircleAlert,
  GraduationCap,
  GripVertical,
  Minus,
  PenLine,
  Plus,
  Scale,
  Wrench,
} from "lucide-react";
import { useRef, useState } from "react";
import type { Estimate, FitWay, GpuEstimate } from "@/api/types";
import { isOnCpu } from "@/document/pools";
import { partBehind, rove } from "@/features/hardware/formulas/formula";
import { bytesIn, longerBy, overOf, spareOf, unknownText, worstOf } from "@/lib/estimate";
import { formatBytes, formatName } from "@/lib/format";
import { useDocument, useEditRefusal, useNodeColor } from "@/state/document/context";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import { MemoryBar, MemoryLegend } from "@/ui/MemoryBar";
import { Menu, MenuItem, MenuLabel } from "@/ui/Menu";
import { Segmented } from "@/ui/Segmented";
import { isWayOut, WAYS } from "./Changes";
import {
  fullestStage,
  gpuRange,
  largestPart,
  type Pool,
  poolsOf,
  type Role,
  roleLabel,
  rolesIn,
  verbsOf,
} from "./lanes";
import { gainText, usePoolColor } from "./StepSplit";
import { useBudget } from "./useBudget";
import { dragRole, useDropRole, usePlacing } from "./usePlacing";

const WORST = "worst";
const LANES = 16;
const ROLES = 3;

export function GpuLanes({ estimate }: { estimate: Estimate }) {
  const [verb, setVerb] = useState(WORST);
  const onCpu = useDocument((state) => isOnCpu(state.document));
  const verbs = verbsOf(estimate);
  const shown = verbs.includes(verb) ? verb : WORST;
  const options = [
    { value: WORST, label: "Peak" },
    ...verbs.map((one) => ({ value: one, label: one })),
  ];
  return (
    <section aria-label="GPUs" className="px-4 pt-2">
      <div className="mb-2 flex flex-wrap items-center gap-x-4 gap-y-1">
        <h3 className="font-semibold text-base">{onCpu ? "Processes" : "GPUs"}</h3>
        <Segmented label="Part of a step" value={shown} options={options} onChange={setVerb} />
        <span className="flex-1" />
        <MemoryLegend estimate={estimate} className="gap-x-3 gap-y-0.5" />
      </div>
      {poolsOf(estimate).map((pool) => (
        <PoolLanes key={pool.name} pool={pool} verb={shown === WORST ? null : shown} />
      ))}
      <p className="flex items-center gap-1.5 pb-3 text-muted text-xs">
        <GripVertical size={13} aria-hidden="true" />
        Drag a role onto a lane to place it, or click it to choose. A role runs on all lanes of its
        pool.
      </p>
    </section>
  );
}

function PoolLanes({ pool, verb }: { pool: Pool; verb: string | null }) {
  const budget = useBudget();
  const roles = rolesIn(pool.name, budget.time, pool.gpus);
  const color = usePoolColor()(roles.map((role) => role.node));
  const { isOver, ...drop } = useDropRole(pool.name);
  const range = useDocument((state) => gpuRange(pool, isOnCpu(state.document)));
  const worst = worstOf(pool.gpus);
  if (!worst) return null;
  const lanes = pool.gpus.length > LANES ? [worst] : pool.gpus;
  const spare = spareOf(worst);
  const isCrowded = roles.length > ROLES;
  const chips = (isFirst: boolean) =>
    roles.map((role) => (
      <RoleChip
        key={`${role.node} ${role.verb}`}
        role={role}
        pool={pool.name}
        label={roleLabel(role, roles)}
        isFirst={isFirst}
      />
    ));
  return (
    <div
      role="group"
      aria-label={`Pool ${pool.name}`}
      data-pool={pool.name}
      className="mb-3 overflow-hidden rounded-3 border"
      style={{
        borderColor: `color-mix(in srgb, ${color} ${isOver ? 90 : 35}%, var(--line))`,
        background: `color-mix(in srgb, ${color} ${isOver ? 10 : 4}%, var(--surface))`,
      }}
      {...drop}
    >
      <div className="flex h-9 items-center gap-2 px-3 text-sm">
        <span className="size-2.5 rounded-[3px]" style={{ background: color }} aria-hidden="true" />
        <b className="truncate">{pool.name}</b>
        <span className="text-muted text-xs">{range}</span>
        <PoolSize pool={pool} />
        <span className="flex-1" />
        {spare === null ? (
          <span
            className="text-muted text-xs"
            title={budget.estimate ? unknownText(budget.estimate) : ""}
          >
            memory not known
          </span>
        ) : worst.fits ? (
          <span className="tabular text-xs">
            <b>{formatBytes(Math.max(spare, 0))}</b> <span className="text-muted">spare</span>
          </span>
        ) : (
          <Badge tone="error">over budget</Badge>
        )}
      </div>
      {isCrowded ? <div className="flex flex-wrap gap-1 px-3 pb-2">{chips(true)}</div> : null}
      <ul>
        {lanes.map((gpu) => (
          <li
            key={gpu.index}
            className="flex min-h-9 items-center gap-3 border-line border-t px-3 py-1"
          >
            <span className="tabular w-9 shrink-0 font-mono text-faint text-xs">
              {lanes.length === pool.gpus.length ? pool.first + gpu.index : `×${pool.gpus.length}`}
            </span>
            {isCrowded ? null : (
              <span className="flex w-64 shrink-0 flex-wrap gap-1 max-xl:w-44">
                {chips(gpu === lanes[0])}
              </span>
            )}
            <LaneMemory gpu={gpu} verb={verb} isFirst={gpu === lanes[0]} />
          </li>
        ))}
      </ul>
      {worst.fits !== false ? null : <OverBudget pool={pool} worst={worst} />}
    </div>
  );
}

interface LaneMemoryProps {
  gpu: GpuEstimate;
  verb: string | null;
  isFirst: boolean;
}

function LaneMemory({ gpu, verb, isFirst }: LaneMemoryProps) {
  const stage = verb === null ? gpu.peak_stage : fullestStage(gpu, verb);
  const peak = verb === null ? gpu.peak_bytes : null;
  const used = stage === null ? 0 : (peak ?? bytesIn(gpu, stage));
  const isOver = used > gpu.usable_bytes;
  return (
    <>
      <span className="min-w-24 flex-1">
        {stage === null ? (
          <span className="text-faint text-xs">nothing runs here</span>
        ) : (
          <MemoryBar
            gpu={gpu}
            stage={stage}
            height={20}
            isInTabOrder={isFirst}
            asButton={partBehind(gpu.pool, true)}
            onKeyDown={rove}
          />
        )}
      </span>
      <span
        className={`tabular w-20 shrink-0 text-right font-medium text-sm ${isOver ? "text-error" : ""}`}
      >
        {stage === null ? "" : formatBytes(used)}
      </span>
      <span className="w-28 shrink-0 truncate text-right text-muted text-xs max-xl:hidden">
        {stage ?? ""}
      </span>
    </>
  );
}

/** The ways stand beside, and may be in sight already: the focus says where. */
function showWays(): void {
  const ways = document.getElementById(WAYS);
  ways?.focus({ preventScroll: true });
  ways?.scrollIntoView({ block: "center" });
}

function OverBudget({ pool, worst }: { pool: Pool; worst: GpuEstimate }) {
  const { answer, isTrying, isSettled, take } = useBudget();
  const refusal = useEditRefusal();
  const place = useDocument((state) => gpuRange(pool, isOnCpu(state.document)));
  const over = overOf(worst);
  const part = largestPart(worst);
  const canFit = answer?.fits && !isTrying;
  const cost = canFit ? longerBy(answer.after.step_seconds, answer.before.step_seconds) : null;
  return (
    <div
      role="alert"
      className="m-2 flex flex-wrap items-center gap-x-3 gap-y-1 rounded-2 bg-error-soft px-3 py-2 text-sm"
    >
      <CircleAlert size={16} className="shrink-0 text-error" aria-hidden="true" />
      <p className="min-w-0 flex-1">
        <b className="text-error">
          {over > 0
            ? `${formatBytes(over)} over budget on ${place}.`
            : `An engine on ${place} has no room for one sequence of full length.`}
        </b>{" "}
        {part
          ? `The largest part is ${formatName(part.part).toLowerCase()} of ${part.node}: ${formatBytes(part.bytes)} in ${worst.peak_stage}.`
          : null}
      </p>
      {answer && !answer.fits && isSettled && answer.ways.length > 0 ? (
        <Button size="small" onClick={showWays}>
          {waysLabel(answer.ways)}
        </Button>
      ) : null}
      {canFit ? (
        <Button
          size="small"
          look="primary"
          icon={<Wrench size={12} />}
          refusal={refusal}
          onClick={() => take(answer.edits, "Make it fit")}
        >
          Make it fit{Math.abs(cost ?? 0) > 1e-3 ? ` ${gainText(cost ?? 0)}` : ""}
        </Button>
      ) : null}
    </div>
  );
}

function waysLabel(ways: readonly FitWay[]): string {
  if (!isWayOut(ways)) return "See what would help";
  return ways.length === 1 ? "See the way to fit" : `See all ${ways.length} ways to fit`;
}

function PoolSize({ pool }: { pool: Pool }) {
  const { pools, reason, resize } = usePlacing();
  const size = pool.gpus.length;
  if (pools.length < 2 || reason !== null) return null;
  return (
    <span className="flex items-center">
      <IconButton
        label={`One GPU less for ${pool.name}`}
        size="small"
        refusal={size < 2 ? "A pool has one GPU at least" : null}
        onClick={() => resize(pool.name, size - 1)}
        icon={<Minus size={13} />}
      />
      <IconButton
        label={`One GPU more for ${pool.name}`}
        size="small"
        onClick={() => resize(pool.name, size + 1)}
        icon={<Plus size={13} />}
      />
    </span>
  );
}

const ICONS: Record<string, typeof Scale> = {
  generate: PenLine,
  score: Scale,
  learn: GraduationCap,
};

interface RoleChipProps {
  role: Role;
  pool: string;
  label: string;
  /** One of the chips of a role is reached by Tab; those of further lanes are the same role. */
  isFirst: boolean;
}

function RoleChip({ role, pool, label, isFirst }: RoleChipProps) {
  const { pools, reason, canSplit, place } = usePlacing();
  const color = useNodeColor(role.node);
  const Icon = ICONS[role.verb] ?? Scale;
  const others = reason === null ? pools.filter((name) => name !== pool) : [];
  const isNew = reason === null && canSplit && !pools.includes(role.node);
  const chip = useRef<HTMLButtonElement>(null);
  const [isOpen, setOpen] = useState(false);
  return (
    <span className="relative inline-flex max-w-full">
      <button
        ref={chip}
        type="button"
        draggable={reason === null}
        tabIndex={isFirst ? 0 : -1}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        onClick={() => setOpen(true)}
        onDragStart={dragRole(role)}
        title={`${role.node} ${role.verb}`}
        aria-label={`${role.node} ${role.verb}, in ${pool}: move`}
        className="inline-flex h-6 max-w-full cursor-grab items-center gap-1 rounded-2 border px-1.5 font-medium text-xs"
        style={{
          color: `color-mix(in srgb, ${color} 70%, var(--text))`,
          borderColor: `color-mix(in srgb, ${color} 35%, var(--line))`,
          background: `color-mix(in srgb, ${color} 10%, var(--surface))`,
        }}
      >
        <Icon size={13} className="shrink-0" aria-hidden="true" />
        <span className="truncate">{label}</span>
      </button>
      <Menu
        isOpen={isOpen}
        onOpenChange={setOpen}
        onClosed={() => chip.current?.focus()}
        trigger={<span aria-hidden="true" className="pointer-events-none absolute inset-0" />}
      >
        <MenuLabel>{reason ?? `Move ${role.node} ${role.verb}`}</MenuLabel>
        {others.map((name) => (
          <MenuItem key={name} onSelect={() => place(role, name)}>
            To {name}
          </MenuItem>
        ))}
        {isNew ? (
          <MenuItem onSelect={() => place(role, role.node)}>To a pool of its own</MenuItem>
        ) : null}
      </Menu>
    </span>
  );
}

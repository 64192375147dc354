import { GraduationCap, PenLine, Scale } from "lucide-react";
import { useRef, useState } from "react";
import { useNodeColor } from "@/state/document/context";
import { Menu, MenuItem, MenuLabel } from "@/ui/Menu";
import type { Role } from "./lanes";
import type { Budget } from "./useBudget";
import { dragRole, usePlacing } from "./usePlacing";

const ICONS: Record<string, typeof Scale> = {
  generate: PenLine,
  score: Scale,
  learn: GraduationCap,
};

interface RoleChipProps {
  role: Role;
  pool: string;
  budget: Budget;
  /** As short as tells it from the others of its pool. */
  label: string;
  /** One of the chips of a role is reached by Tab; those of further lanes are the same role. */
  isFirst: boolean;
}

export function RoleChip({ role, pool, budget, label, isFirst }: RoleChipProps) {
  const { pools, reason, canSplit, place } = usePlacing(budget);
  const color = useNodeColor(role.node);
  const Icon = ICONS[role.verb] ?? Scale;
  const others = pools.filter((name) => name !== pool);
  const isNew = !pools.includes(role.node) && canSplit;
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
        {reason === null
          ? others.map((name) => (
              <MenuItem key={name} onSelect={() => place(role, name)}>
                To {name}
              </MenuItem>
            ))
          : null}
        {reason === null && isNew ? (
          <MenuItem onSelect={() => place(role, role.node)}>To a pool of its own</MenuItem>
        ) : null}
      </Menu>
    </span>
  );
}

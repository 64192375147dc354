import type { RunQuery, RunState } from "@/api/types";
import { formatName } from "@/lib/format";
import { CONTROL } from "@/ui/control";
import { Select } from "@/ui/Select";
import { RUN_STATES } from "./RunStateChip";

type Sort = NonNullable<RunQuery["sort"]>;

export interface RunWishes {
  search: string;
  state: RunState | "";
  tag: string;
  sort: Sort;
}

export const ALL_RUNS: RunWishes = { search: "", state: "", tag: "", sort: "created" };

const SORTS: readonly { value: Sort; label: string }[] = [
  { value: "created", label: "Newest first" },
  { value: "ended", label: "Last ended" },
  { value: "name", label: "By name" },
  { value: "state", label: "By state" },
  { value: "step", label: "Most steps" },
];

interface RunFiltersProps {
  wishes: RunWishes;
  tags: readonly string[];
  onChange: (change: Partial<RunWishes>) => void;
}

export function RunFilters({ wishes, tags, onChange }: RunFiltersProps) {
  return (
    <div className="flex flex-wrap items-center gap-2">
      <input
        role="searchbox"
        aria-label="Filter runs"
        placeholder="Filter by name, tag or state"
        className={`${CONTROL} w-64`}
        value={wishes.search}
        onChange={(event) => onChange({ search: event.target.value })}
      />
      <div className="w-32">
        <Select<RunState | "">
          label="State"
          value={wishes.state}
          options={[
            { value: "", label: "Any state" },
            ...RUN_STATES.map((value) => ({ value, label: formatName(value) })),
          ]}
          onChange={(state) => onChange({ state })}
        />
      </div>
      {tags.length > 0 || wishes.tag !== "" ? (
        <div className="w-36">
          <Select
            label="Tag"
            value={wishes.tag}
            options={[
              { value: "", label: "Any tag" },
              ...[...new Set([...tags, wishes.tag])]
                .filter(Boolean)
                .map((tag) => ({ value: tag, label: tag })),
            ]}
            onChange={(tag) => onChange({ tag })}
          />
        </div>
      ) : null}
      <div className="w-36">
        <Select
          label="Order"
          value={wishes.sort}
          options={SORTS}
          onChange={(sort) => onChange({ sort })}
        />
      </div>
    </div>
  );
}

import { Search, X } from "lucide-react";
import { useEffect, useRef } from "react";
import { WIDE_CONTROL } from "@/ui/control";
import { IconButton } from "@/ui/IconButton";

interface PaletteSearchProps {
  isAsked: boolean;
  search: string;
  onSearch: (search: string) => void;
  onEnter: () => void;
}

export function PaletteSearch({ isAsked, search, onSearch, onEnter }: PaletteSearchProps) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (isAsked) input.current?.focus();
  }, [isAsked]);
  return (
    <div className="relative min-w-0 flex-1">
      <Search
        size={14}
        className="absolute top-1/2 left-2 -translate-y-1/2 text-faint"
        aria-hidden="true"
      />
      <input
        ref={input}
        role="searchbox"
        aria-label="Search nodes"
        placeholder="Search nodes"
        value={search}
        onChange={(event) => onSearch(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") onEnter();
          if (event.key !== "Escape" || search === "") return;
          event.stopPropagation();
          onSearch("");
        }}
        className={`${WIDE_CONTROL} pl-7`}
      />
      {search ? (
        <IconButton
          label="Clear search"
          size="small"
          className="absolute top-1/2 right-1 size-5 -translate-y-1/2"
          onClick={() => onSearch("")}
        >
          <X size={12} />
        </IconButton>
      ) : null}
    </div>
  );
}

import { Blocks, ChevronDown, Trash2 } from "lucide-react";
import { useState } from "react";
import type { Block } from "@/api/types";
import { searchBlocks } from "@/catalog/search";
import { offersBlock } from "@/document/blocks";
import { isLearner } from "@/document/identities";
import { useDropTarget } from "@/state/canvas";
import { useCatalog, useDocument, useMode } from "@/state/document/context";
import { useBlocks } from "@/state/queries";
import { BLOCK_DRAG } from "@/state/useAddNode";
import { useDeleteBlock } from "@/state/useBlocks";
import { IconButton } from "@/ui/IconButton";
import { RichText } from "@/ui/RichText";
import { Tooltip } from "@/ui/Tooltip";
import { useInsertInMiddle } from "./useAddInMiddle";

/**
 * Building blocks of the mode, and those of one's own: drag one onto the canvas, or press it to insert it. Open until
 * something learns in the loop; a search looks into it.
 */
export function PaletteBlocks({ search }: { search: string }) {
  const catalog = useCatalog();
  const mode = useMode();
  const isBegun = useDocument(({ document }) =>
    Object.keys(document.nodes).some((id) => isLearner(catalog, document, id)),
  );
  const isReadonly = useDocument((state) => state.isReadonly);
  const [wish, setWish] = useState<boolean | null>(null);
  const isSearching = search.trim() !== "";
  const isOpen = isSearching || (wish ?? !isBegun);
  const insert = useInsertInMiddle();
  const blocks = useBlocks();
  const found = searchBlocks(blocks, search).filter(
    (block) => isSearching || offersBlock(mode, block),
  );
  const shipped = found.filter((block) => !block.is_own);
  const own = found.filter((block) => block.is_own);
  if (found.length === 0) return null;
  const list = (listed: readonly Block[]) => (
    <ul className="flex flex-col gap-0.5">
      {listed.map((block) => (
        <li key={block.id} className="group relative">
          <BlockItem block={block} isDisabled={isReadonly} onInsert={() => insert(block)} />
          {block.is_own ? <DeleteButton block={block} /> : null}
        </li>
      ))}
    </ul>
  );
  return (
    <section aria-label="Blocks" className="mb-1.5">
      <button
        type="button"
        className="flex h-6 w-full items-center gap-1 rounded-1 px-1 font-medium text-faint text-xs hover:text-text"
        aria-expanded={isOpen}
        onClick={() => setWish(!isOpen)}
      >
        <span className="flex-1 text-left">Blocks</span>
        {found.length}
        <ChevronDown size={12} className={isOpen ? "rotate-180" : ""} />
      </button>
      {isOpen ? (
        <>
          {list(shipped)}
          {own.length > 0 ? (
            <>
              <h3 className="flex h-6 items-center px-1 text-faint text-xs">Yours</h3>
              {list(own)}
            </>
          ) : null}
        </>
      ) : null}
    </section>
  );
}

interface BlockItemProps {
  block: Block;
  isDisabled: boolean;
  onInsert: () => void;
}

function BlockItem({ block, isDisabled, onInsert }: BlockItemProps) {
  return (
    <Tooltip side="right" text={<BlockHelp block={block} />}>
      <button
        type="button"
        draggable={!isDisabled}
        disabled={isDisabled}
        onClick={({ detail, currentTarget }) => {
          if (detail > 1) return;
          if (detail > 0) currentTarget.blur();
          onInsert();
        }}
        onDragStart={(event) => {
          event.dataTransfer.setData(BLOCK_DRAG, block.id);
          event.dataTransfer.effectAllowed = "copy";
          useDropTarget.setState({ block: block.id });
        }}
        onDragEnd={() => useDropTarget.setState({ block: null })}
        className="flex min-h-8 w-full cursor-grab items-center gap-2 overflow-hidden rounded-2 px-1.5 text-left text-sm hover:bg-hover active:cursor-grabbing disabled:cursor-not-allowed disabled:opacity-50 group-focus-within:pr-7 group-hover:pr-7"
      >
        <span className="loop-node-icon size-6">
          <Blocks size={14} aria-hidden="true" />
        </span>
        <span className="min-w-0 flex-1 truncate">{block.title}</span>
      </button>
    </Tooltip>
  );
}

export function BlockHelp({ block }: { block: Block }) {
  const open = Object.entries(block.open);
  return (
    <>
      <b className="block">{block.title}</b>
      {block.description ? <RichText text={block.description} /> : null}
      <span className="mt-1 block font-mono text-2xs">{Object.keys(block.nodes).join(", ")}</span>
      {open.length > 0 ? (
        <span className="mt-1 block">
          Open: <RichText text={open.map(([end, what]) => `\`${end}\` (${what})`).join(", ")} />
        </span>
      ) : null}
    </>
  );
}

function DeleteButton({ block }: { block: Block }) {
  const { isBusy, remove } = useDeleteBlock();
  return (
    <IconButton
      label={`Delete the block ${block.title}`}
      size="small"
      className="absolute top-1 right-1 size-6 opacity-0 focus-visible:opacity-100 group-hover:opacity-100"
      disabled={isBusy}
      onClick={() => remove(block)}
      icon={<Trash2 size={13} />}
    />
  );
}

import { useQueryClient } from "@tanstack/react-query";
import { toast } from "sonner";
import { deleteBlock, saveBlock } from "@/api/routes";
import type { Block, Bodies } from "@/api/types";
import { blocksQuery } from "./queries";
import { useAttempt } from "./useAttempt";

export function useSaveBlock() {
  const { isBusy, attempt } = useAttempt();
  const client = useQueryClient();
  /** Whether it was saved; if not, it was told why. */
  const save = async (block: Bodies["NewBlock"]): Promise<boolean> => {
    let isSaved = false;
    await attempt(async () => {
      const made = await saveBlock(block);
      client.setQueryData(blocksQuery.queryKey, (blocks) => blocks && [...blocks, made]);
      isSaved = true;
      toast(`Saved the block “${made.title}”`);
    }, "The block was not saved.");
    return isSaved;
  };
  return { isBusy, save };
}

/** A block that was deleted can be had back for as long as it is told. */
export function useDeleteBlock() {
  const { isBusy, attempt } = useAttempt();
  const { save } = useSaveBlock();
  const client = useQueryClient();
  const remove = (block: Block) =>
    void attempt(async () => {
      await deleteBlock(block.id);
      client.setQueryData(blocksQuery.queryKey, (blocks) =>
        blocks?.filter(({ id }) => id !== block.id),
      );
      const { title, description, nodes, edges, layout, open } = block;
      toast(`Deleted the block “${title}”`, {
        action: {
          label: "Undo",
          onClick: () => void save({ title, description, nodes, edges, layout, open }),
        },
      });
    }, "The block was not deleted.");
  return { isBusy, remove };
}

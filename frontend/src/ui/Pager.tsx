import { Button } from "./Button";

interface PagerProps {
  size?: "small" | "medium";
  hasPrevious: boolean;
  hasNext: boolean;
  onPrevious: () => void;
  onNext: () => void;
}

export function Pager({ size = "medium", hasPrevious, hasNext, onPrevious, onNext }: PagerProps) {
  return (
    <>
      <Button size={size} disabled={!hasPrevious} onClick={onPrevious}>
        Previous
      </Button>
      <Button size={size} disabled={!hasNext} onClick={onNext}>
        Next
      </Button>
    </>
  );
}

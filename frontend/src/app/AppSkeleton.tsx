/** The editor's outline while it loads. */
export function AppSkeleton() {
  return (
    <div role="status" aria-label="Loading" className="flex h-full flex-col">
      <div className="flex h-12 items-center gap-3 border-line border-b bg-surface px-3">
        <div className="skeleton size-6" />
        <div className="skeleton h-4 w-40" />
        <div className="flex-1" />
        <div className="skeleton h-7 w-20" />
      </div>
      <div className="flex min-h-0 flex-1">
        <div className="w-[208px] border-line max-xl:w-12 border-r bg-surface p-3">
          {Array.from({ length: 8 }, (_, row) => (
            <div key={row} className="skeleton mb-3 h-5" />
          ))}
        </div>
        <div className="flex-1" />
        <div className="w-[344px] border-line border-l bg-surface max-lg:hidden" />
      </div>
    </div>
  );
}

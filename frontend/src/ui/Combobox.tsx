import { Select, type SelectProps } from "./Select";

/** One of many: a list that is searched by typing, however short it is. */
export function Combobox<V extends string>(props: SelectProps<V>) {
  return <Select isSearched {...props} />;
}

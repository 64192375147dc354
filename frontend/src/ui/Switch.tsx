import { Switch as RadixSwitch } from "radix-ui";

interface SwitchProps {
  id?: string;
  label?: string;
  isOn: boolean;
  isDisabled?: boolean;
  describedBy?: string | undefined;
  onChange: (isOn: boolean) => void;
}

export function Switch(props: SwitchProps) {
  const { id, label, isOn, isDisabled = false, describedBy, onChange } = props;
  return (
    <RadixSwitch.Root
      {...(id ? { id } : {})}
      aria-label={label}
      aria-describedby={describedBy}
      checked={isOn}
      disabled={isDisabled}
      onCheckedChange={onChange}
      className="relative h-5 w-9 shrink-0 rounded-full border border-line-strong bg-sunken transition-colors disabled:opacity-50 data-[state=checked]:border-accent data-[state=checked]:bg-accent"
    >
      <RadixSwitch.Thumb className="block size-3.5 translate-x-0.5 rounded-full bg-line-strong transition-transform data-[state=checked]:translate-x-[17px] data-[state=checked]:bg-on-accent" />
    </RadixSwitch.Root>
  );
}

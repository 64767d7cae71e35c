// The person's settings, with their defaults where the application has none.
import type { ISettingRegistry } from "@jupyterlab/settingregistry";

export interface Settings {
  catalogPanel: boolean;
  approvals: "card" | "off";
}

const DEFAULTS: Settings = { catalogPanel: true, approvals: "card" };

/** Calls `use` with the settings now, and whenever they change. */
export function followSettings(registry: ISettingRegistry | null, use: (settings: Settings) => void): void {
  if (!registry) return use(DEFAULTS);
  registry.load("reyn-jupyter:plugin").then(
    (loaded) => {
      const read = (): void => use({ ...DEFAULTS, ...(loaded.composite as Partial<Settings>) });
      loaded.changed.connect(read);
      read();
    },
    (error: unknown) => {
      console.warn("reyn-jupyter: the settings cannot be read; the defaults hold.", error);
      use(DEFAULTS);
    },
  );
}

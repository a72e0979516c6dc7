// What is known of a client on this machine, and what a judgement finds in it.

import type { Client } from '../hook-event.js';

/** Whose settings a file has. Clients merge the levels in their own ways. */
export type SettingsLevel = 'user' | 'project' | 'local' | 'managed';

/** `gate`: hooks ask about each native tool. `strong`: the client has the tools of Turnpike and no others. */
export const PROFILES = ['gate', 'strong'] as const;
/** One of `PROFILES`. */
export type Profile = (typeof PROFILES)[number];

/** What a file of a client is. */
export type SettingsKind =
  'settings' | 'hooks' | 'requirements' | 'plugin' | 'plugin_options' | 'dependency' | 'script' | 'servers';

/** Where a file of a client is. */
export interface SettingsPlace {
  readonly kind: SettingsKind;
  readonly level: SettingsLevel;
  readonly path: string;
  /** The folder that the file must be in after links are resolved. */
  readonly root: string;
}

/** A file of a client. */
export interface SettingsFile extends SettingsPlace {
  /** Null if the file does not exist, or cannot be used. */
  readonly text: string | null;
  /** Why the file cannot be used; null if it can, or does not exist. */
  readonly problem: string | null;
  /** Whether its owner may execute it. */
  readonly executable: boolean;
}

/** A file that settings start as the hook, or as its interpreter. */
export interface ProgramFile {
  /** The path without links; null if there is no such file. */
  readonly real: string | null;
  /** Null for a file that cannot be read, or is too large to be the hook program. */
  readonly sha256: string | null;
}

/** Everything that a judgement looks at. */
export interface ClientFacts {
  readonly client: Client;
  /** Null if it could not be found out. */
  readonly version: string | null;
  readonly profile: Profile;
  readonly project: string;
  /** The same without links. */
  readonly project_real: string;
  readonly files: readonly SettingsFile[];
  /** The SHA-256 of the plugin that this package ships. */
  readonly plugin_sha256: string;
  /** The SHA-256 of the hook program that this package ships. */
  readonly hook_sha256: string;
  /** What the repository has that runs without a hook. */
  readonly repository: readonly string[];
  /** What the user has that runs without a hook, as absolute paths. */
  readonly user: readonly string[];
  /** Whether all folders of the project were looked at. */
  readonly looked_at_all: boolean;
  /** What the settings start as the hook, by the paths in them. */
  readonly programs: ReadonlyMap<string, ProgramFile>;
  /** The variables of the environment that change what a client loads. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** A setting by which a client could act without a decision (`opens`), or that is worth knowing (`note`). */
export interface ClientFinding {
  /** Lower case letters, digits, `_` and `.`; stable. */
  readonly id: string;
  readonly severity: 'opens' | 'note';
  readonly message: string;
  /** What the user does about it. */
  readonly remedy: string;
}

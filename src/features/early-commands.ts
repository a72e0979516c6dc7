// The commands of features that start without the others, because a client starts them before each of its calls. This
// list imports nothing. To remove a feature that has such a command, remove it here too.

/** Runs with the words after the name of the command, and ends the process. */
export interface EarlyCommand {
  readonly name: string;
  readonly run: (argv: readonly string[]) => Promise<never>;
}

export const EARLY_COMMANDS: readonly EarlyCommand[] = [
  { name: 'hook', run: async (argv) => (await import('./hooks/commands/program/run-hook.js')).runHook(argv) },
];

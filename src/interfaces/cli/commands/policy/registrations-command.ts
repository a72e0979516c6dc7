import { writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { loadModule, type ModuleExports } from '../../../../system/files/load-module.js';
import { errorCode } from '../../../../system/error-code.js';
import { usageError } from '../../../../core/errors.js';
import { registrationsOfModule } from '../../../../runtime/effects/module-registrations.js';
import { quoteArgument } from '../../arguments.js';
import { defineCommand, type CliCommand } from '../../command.js';
import { countText, escapeText } from '../../text/terminal.js';

/** How long the module may take to load, in milliseconds. */
const LOAD_MS_MAX = 30_000;

/** `turnpike registrations`: writes what a service registers, for `--registrations` of other commands. */
export const registrations: CliCommand = defineCommand({
  name: 'registrations',
  access: 'none',
  summary: 'Write the tools, targets and actions that a module exports, as the file that --registrations takes',
  operands: { usage: 'MODULE', min: 1, max: 1 },
  options: [{ name: 'out', value: 'FILE', help: 'write to FILE instead of standard output; FILE may exist' }],
  notes: [
    'MODULE is a JavaScript file of a service. The command loads it, as the service does, so its import must start',
    'nothing: export what defineTool, defineTarget and defineAction return, alone, in lists, or as `tools`, `targets`',
    'and `actions` of an object. `policy check --registrations FILE` then knows the names and schemas. Write FILE again',
    'when a definition changes.',
  ],
  async run(args, io) {
    const [name = ''] = args.operands;
    const found = registrationsOfModule(await loadServiceModule(resolve(io.cwd, name), name), quoteArgument(name));
    const text = `${JSON.stringify(found, null, 2)}\n`;
    const { out } = args.values;
    if (out === undefined) {
      await io.stdout.write(text);
      return 0;
    }
    await writeFile(resolve(io.cwd, out), text).catch((error: unknown) => {
      throw usageError(`cannot write ${out}: ${errorCode(error)}`);
    });
    const { tools, targets, actions } = found;
    const counts = [
      countText(tools.length, 'tool'),
      countText(targets.length, 'target'),
      countText(actions.length, 'action'),
    ];
    await io.stderr.writeLine(escapeText(`${out}: ${counts.join(', ')}`));
    return 0;
  },
});

/** @throws UsageError if the module does not exist, throws, or does not load in time */
async function loadServiceModule(path: string, name: string): Promise<ModuleExports> {
  if (!existsSync(path)) throw usageError(`${quoteArgument(name)} does not exist`);
  if (/\.[cm]?tsx?$/u.test(path))
    throw usageError(`${quoteArgument(name)} is TypeScript: compile it, and name the JavaScript file`);
  const loaded = await loadModule(path, LOAD_MS_MAX).catch((cause: unknown) => {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw usageError(`${quoteArgument(name)} cannot be loaded: ${message}`);
  });
  if (loaded !== null) return loaded;
  throw usageError(`${quoteArgument(name)} has not loaded in ${LOAD_MS_MAX / 1_000} s: its import must start nothing`);
}

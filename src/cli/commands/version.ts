import { existsSync, readFileSync } from 'node:fs';
import { isJsonObject } from '../../contract/json.js';
import { InvariantError } from '../../errors.js';
import { NO_OPERANDS, type Command } from '../command.js';
import { jsonLine } from '../terminal.js';

/** `turnpike version`: which version of the package this is, and on what it runs. */
export const version: Command = {
  name: 'version',
  summary: 'Print the version',
  operands: NO_OPERANDS,
  options: [],
  async run(args, io) {
    const turnpike = packageVersion();
    await io.stdout.write(args.flag('json') ? jsonLine({ turnpike, node: process.version }) : `turnpike ${turnpike}\n`);
    return 0;
  },
};

/** From the sources as well as from the build. */
function packageVersion(): string {
  const candidates = ['../../../package.json', '../../../../package.json'].map(
    (path) => new URL(path, import.meta.url),
  );
  const found = candidates.find((url) => existsSync(url));
  const manifest: unknown = found === undefined ? null : JSON.parse(readFileSync(found, 'utf8'));
  const number = isJsonObject(manifest) ? manifest['version'] : undefined;
  if (typeof number !== 'string') throw new InvariantError('the package has no version');
  return number;
}

import { readPackageVersion } from '../../../system/package-version.js';
import { NO_OPERANDS, type CliCommand } from '../command.js';
import { jsonLine } from '../text/terminal.js';

/** `turnpike version`: prints the versions of the package and of Node. */
export const version: CliCommand = {
  name: 'version',
  access: 'none',
  summary: 'Print the version',
  operands: NO_OPERANDS,
  options: [],
  async run(args, io) {
    const turnpike = readPackageVersion();
    await io.stdout.write(args.values.json ? jsonLine({ turnpike, node: process.version }) : `turnpike ${turnpike}\n`);
    return 0;
  },
};

import { join } from 'node:path';
import { readSmallFile, replaceFile } from '../../../system/files/small-file.js';
import { OPTIONAL_FILES } from '../../../core/contract/policy/pins.js';
import { PolicyError, usageError } from '../../../core/errors.js';
import { formatFinding } from '../../../core/policy/files/check-policy.js';
import { NO_OPERANDS, type CliCommand } from '../../../interfaces/cli/command.js';
import { displayPath, findContractFolder } from '../../../interfaces/cli/options/folders.js';
import { escapeText } from '../../../interfaces/cli/text/terminal.js';

/** `turnpike policy format`: formats conditions.cedar. */
export const policyFormat: CliCommand = {
  name: 'policy format',
  access: 'none',
  summary: 'Format conditions.cedar of a contract folder; comments stay',
  operands: NO_OPERANDS,
  options: [{ name: 'check', help: 'change nothing; exit 1 if the file is not formatted' }],
  notes: ['The conditions stay the same: if the formatted file said anything else, it would not be written.'],
  async run(args, io) {
    const { formatConditions } = await import('../format-conditions.js');
    const { CONDITION_BYTES_MAX } = await import('../condition-file.js');
    const folder = findContractFolder(args, io);
    if (!folder.isChosen) throw usageError('no contract folder: name one with --contract DIR');
    const path = join(folder.path, 'policy', OPTIONAL_FILES.conditions);
    const shown = displayPath(path, io);
    const bytes = readSmallFile(path, { bytesMax: CONDITION_BYTES_MAX });
    if (bytes === null) throw usageError(`${shown} does not exist`);
    const { text, findings } = formatConditions(shown, bytes);
    if (text === null) {
      throw new PolicyError({ code: 'POLICY_INVALID', message: findings.map(formatFinding).join('\n') });
    }
    const isFormatted = Buffer.from(text).equals(bytes);
    if (args.flag('check')) {
      await io.stdout.write(`${escapeText(shown)} is ${isFormatted ? '' : 'not '}formatted\n`);
      return isFormatted ? 0 : 1;
    }
    if (!isFormatted) replaceFile(path, text, 0o644);
    await io.stdout.write(`${escapeText(shown)} ${isFormatted ? 'is formatted' : 'was formatted'}\n`);
    return 0;
  },
};

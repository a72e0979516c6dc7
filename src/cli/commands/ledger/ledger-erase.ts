import { join } from 'node:path';
import { commandUsageError } from '../../arguments.js';
import type { CliCommand } from '../../command.js';
import { homeOf } from '../../options/folders.js';
import { withHomeAccess } from '../../home-access.js';
import { PERSON_OPTIONS, requireOption } from '../../options/person-options.js';
import { countText, escapeText, jsonLine } from '../../text/terminal.js';

const ARCHIVED_NOTE = 'note: run trees of it are archived: the archive files hold their content still\n';

/** `turnpike ledger erase`: destroys the content of a case (D14). */
export const ledgerErase: CliCommand = {
  name: 'ledger erase',
  summary: 'Destroy the content of a case for good; hashes, proofs and decisions stay',
  operands: { usage: 'CASE', min: 1, max: 1 },
  options: [
    ...PERSON_OPTIONS.filter(({ name }) => name === 'actor'),
    { name: 'yes', help: 'really: it cannot be undone' },
  ],
  notes: [
    'All payloads, results, files, specs and reports that the ledger holds of CASE are encrypted with a key of its own,',
    'which is destroyed. No run tree of the case may live. Backups and copies have that key still, and what was exported',
    'or promoted is somewhere else: neither is touched, nor are the sandbox of the case and the records of its tables,',
    'nor archive files, which hold the content of the run trees that were archived.',
  ],
  async run(args, io) {
    const [case_id = ''] = args.operands;
    const erasure = { case: case_id, actor: requireOption(ledgerErase, args, 'actor') };
    if (!args.flag('yes')) throw commandUsageError(ledgerErase, 'this destroys content for good: say --yes');
    const erased = await withHomeAccess(args, io, (home) => home.erase(erasure));
    const { contents, bytes, archived = false } = erased;
    const message =
      `erased ${countText(contents, 'content')} of ${case_id}, ${countText(bytes, 'byte')}; ` +
      `${join(homeOf(args, io).sandbox, case_id)} is as it was`;
    await io.stdout.write(
      args.flag('json') ? jsonLine({ case_id, ...erased }) : `${escapeText(message)}\n${archived ? ARCHIVED_NOTE : ''}`,
    );
    return 0;
  },
};

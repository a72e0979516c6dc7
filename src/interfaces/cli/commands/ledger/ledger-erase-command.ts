import { join } from 'node:path';
import { defineCommand, type CliCommand } from '../../command.js';
import { homeOf } from '../../options/folders.js';
import { withHomeAccess } from '../../home-access.js';
import { progressFor } from '../../progress-bar.js';
import { OPERATOR_OPTIONS, operatorOf } from '../../options/person-options.js';
import { countText, escapeText, jsonLine } from '../../text/terminal.js';

const ARCHIVED_NOTE = 'note: some run trees of this case are archived: the archive files still contain their content\n';

/** `turnpike ledger erase`: destroys the content of a case (D14). */
export const ledgerErase: CliCommand = defineCommand({
  name: 'ledger erase',
  access: 'write',
  summary: 'Destroy the content of a case permanently; hashes, proofs and decisions remain',
  operands: { usage: 'CASE', min: 1, max: 1 },
  options: [...OPERATOR_OPTIONS, { name: 'yes', help: 'confirm: the erasure cannot be undone' }],
  notes: [
    'The ledger encrypts all payloads, results, files, specs and reports of CASE with a key of that case; this command',
    'destroys the key. No run tree of the case may be active. Backups and copies still contain the key. The command',
    'does not change exports, promoted records, the sandbox of the case, the records of its tables, or archive files,',
    'which contain the content of archived run trees. Policy decides first: conditions of the action "erasure", an',
    'approval for erasure, and the lanes that list the tool ledger.erase.',
  ],
  async run(args, io) {
    const [case_id = ''] = args.operands;
    const { yes, json } = args.values;
    if (!yes) throw args.usageError('this destroys content permanently: confirm with --yes');
    const erasure = { case: case_id, ...operatorOf(args.values) };
    const erased = await withHomeAccess(args, io, (home) => {
      progressFor(args, io).begin({ label: 'erasing', unit: 'entries', total: null });
      return home.turnpike.erase(erasure);
    });
    const { contents, bytes, archived = false } = erased;
    const message =
      `erased ${countText(contents, 'content')} of ${case_id}, ${countText(bytes, 'byte')}; ` +
      `${join(homeOf(args, io).sandbox, case_id)} is unchanged`;
    await io.stdout.write(
      json ? jsonLine({ case_id, ...erased }) : `${escapeText(message)}\n${archived ? ARCHIVED_NOTE : ''}`,
    );
    return 0;
  },
});

import { POLICY_FILES } from '../../contract/pins.js';
import { findingLine } from '../../policy/check-policy.js';
import { NO_OPERANDS, type Command } from '../command.js';
import { contractOf, loadContract, shownPath } from '../folders.js';
import { escaped, jsonLine } from '../terminal.js';

/** `turnpike policy check`: everything that is wrong with a policy. */
export const policyCheck: Command = {
  name: 'policy check',
  summary: 'Lint a policy: each finding with file, line and rule',
  operands: NO_OPERANDS,
  options: [],
  notes: ['Exits 1 when there is a finding. A file without a valid pin is no finding, and is told on stderr.'],
  async run(args, io) {
    const contract = contractOf(args, io);
    const { files, check } = await loadContract(contract, io);
    const { findings } = check;
    const unpinned = POLICY_FILES.flatMap((name) => {
      const { path, pin } = files[name];
      return 'problem' in pin ? [{ file: shownPath(path, io), problem: pin.problem }] : [];
    });
    if (args.flag('json')) {
      for (const finding of findings) await io.stdout.write(jsonLine(finding));
    } else {
      for (const finding of findings) await io.stdout.write(`${escaped(findingLine(finding))}\n`);
      const where = escaped(shownPath(contract.path, io));
      if (findings.length === 0) await io.stdout.write(`ok: the policy of ${where} has no findings\n`);
    }
    for (const { file, problem } of unpinned) {
      await io.stderr.say(
        `${escaped(file)} is not pinned (${problem}): runs are denied until it is committed, or pinned by \`turnpike policy pin\``,
      );
    }
    return findings.length === 0 ? 0 : 1;
  },
};

#!/usr/bin/env node
// The command. Help and version are answered without loading anything else, and so is what a feature runs without the
// other commands, such as a hook of a coding agent.

import { EARLY_COMMANDS } from '../../features/early-commands.js';
import { preparedAnswer, readPreparedTexts } from './help/prepared-answers.js';

const argv = process.argv.slice(2);
const early =
  argv.length > 1 && !argv.includes('--help') ? EARLY_COMMANDS.find(({ name }) => name === argv[0]) : undefined;
const texts = early === undefined ? readPreparedTexts() : null;
const answer = texts === null ? null : preparedAnswer(argv, texts);
if (early !== undefined) {
  await early.run(argv.slice(1));
} else if (answer === null) {
  const { runCommand } = await import('./run-cli-command.js');
  await runCommand(argv);
} else {
  // A reader that is gone is no error: `turnpike help | head`.
  process.stdout.on('error', () => process.exit(0));
  process.stdout.write(answer);
}

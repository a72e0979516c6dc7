// Why calls of a session of a coding agent may be missing among those that were decided. A session is only said to have
// no gaps if there is no such reason. Their codes are recorded with the session, as a value of its scope.

const TEXTS = {
  outcomes: 'its client does not report outcomes, so a call without a decision is not seen',
  failures: 'its client does not report failures',
  version: 'the hooks of its version were never measured',
  trust: 'its client ignores the hook in a folder that is not trusted',
  repository: 'of the repository run without a hook',
  user: 'of the user run without a hook',
  http: 'what its client asks over HTTP while the service is away is not counted',
  folders: 'not all folders of the project were looked at',
} as const;
type MissingComparisonCode = keyof typeof TEXTS;

/** What a session may not be compared with. */
export interface MissingComparison {
  readonly code: MissingComparisonCode;
  /** How many of them there are. */
  readonly count?: number;
}

/** What is recorded of a session whose calls were all compared. */
const NOTHING = 'none';

/** @returns an identifier */
export const writeMissingComparisons = (reasons: readonly MissingComparison[]): string =>
  reasons.length === 0
    ? NOTHING
    : reasons.map(({ code, count }) => (count === undefined ? code : `${code}.${count}`)).join('+');

/** @param text null for a session of which nothing is recorded */
export function missingComparisonTexts(text: string | null): readonly string[] {
  if (text === null) return ['nothing has looked at what its client runs without a hook'];
  if (text === NOTHING) return [];
  return text.split('+').map((one) => {
    const [code = '', count = ''] = one.split('.');
    const known = Object.hasOwn(TEXTS, code) ? TEXTS[code as MissingComparisonCode] : `an unknown reason (${code})`;
    return isItemCode(code) ? itemsText(code, Number(count)) : known;
  });
}

/** What is counted. */
type ItemCode = 'repository' | 'user';
const isItemCode = (code: string): code is ItemCode => code === 'repository' || code === 'user';

/** Some of the names follow. */
export const itemsText = (code: ItemCode, count: number, names: readonly string[] = []): string =>
  `${count} commands, skills, agents and servers ${TEXTS[code]}` +
  (names.length === 0 ? '' : ` (${names.join(', ')}${names.length < count ? ', ...' : ''})`);

/** Whether a text is that of such a count. */
export const isItemsText = (code: ItemCode, text: string): boolean => text.includes(` servers ${TEXTS[code]}`);

export const FOLDERS_TEXT = TEXTS.folders;

/** Where the folder of the project is not there to be looked at. */
export const REPOSITORY_SINCE = 'what was added to the repository since the session began';

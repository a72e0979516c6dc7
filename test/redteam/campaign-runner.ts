// What a campaign of `npm run redteam` is: see run.mjs.

export interface RedteamOptions {
  /** What is random is drawn from it. */
  readonly seed: number;
  /** About how long it attacks. Default: the campaign's own. */
  readonly seconds?: number;
  /** Reports progress. */
  readonly say: (line: string) => void;
}

export interface RedteamResult {
  /** What was measured, by name. */
  readonly figures: Readonly<Record<string, string | number>>;
  /** What did not hold, one sentence each. */
  readonly failures: readonly string[];
}

export type RedteamCampaign = (options: RedteamOptions) => Promise<RedteamResult>;

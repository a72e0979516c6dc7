// Icons: each state and outcome has its own shape, so that it is not shown by colour alone.

import type { ComponentChildren, ComponentProps } from 'preact';
import type { Tone } from '../../../../../core/contract/inspection/inspection.js';
import { hueOf, type Hue } from '../../store/rows/tones.js';

const Svg = ({ children, of = '' }: { readonly children: ComponentChildren; readonly of?: string }) => (
  <svg class={`icon ${of}`} viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
    {children}
  </svg>
);

const RING = <circle cx="8" cy="8" r="6" />;
const SHIELD = <path d="M8 1.6 13.4 3.6V8c0 3.2-2.3 5.4-5.4 6.400C4.9 13.4 2.6 11.2 2.6 8V3.600z" />;
const CROSS = <path d="m5.7 5.7 4.6 4.600m0-4.6-4.6 4.6" />;
const SHAPES: Readonly<Record<Hue | 'paused', ComponentChildren>> = {
  paused: [RING, <path d="M6.500 5.600v4.800m3-4.800v4.800" />],
  plain: <circle cx="8" cy="8" r="2" class="solid" />,
  idle: RING,
  running: [RING, <path class="solid" d="M8 2a6 6 0 0 1 0 12z" />],
  completed: [RING, <path d="m5.3 8.2 1.9 1.9 3.5-3.9" />],
  failed: [RING, CROSS],
  denied: [SHIELD, <path d="M5.4 8h5.2" />],
  cancelled: [RING, <rect class="solid" x="5.7" y="5.7" width="4.6" height="4.6" rx="1" />],
  waiting: [RING, <path d="M8 4.500V8l2.300 1.500" />],
  invalid: [<path d="M8 2.3 14 13.200H2z" />, <path d="M8 6.300v3.200m0 1.700v.2" />],
};

export const ToneIcon = ({ tone }: { readonly tone: Tone | 'paused' }) => (
  <Svg of={`h-${hueOf(tone)}`}>{toneShape(tone)}</Svg>
);

/** The same shapes for use inside the SVG of a chart. */
export const toneShape = (tone: Tone | 'paused'): ComponentChildren => SHAPES[tone === 'paused' ? tone : hueOf(tone)];

const ICON_SHAPES = {
  first: <path d="M4 3.500v9M12.5 3.5 7 8l5.5 4.500z" />,
  back: <path d="M10 3.5 5.5 8l4.5 4.5" />,
  on: <path d="M6 3.5 10.5 8 6 12.5" />,
  open: <path d="m4.5 6.5 3.5 3.5 3.5-3.5" />,
  close: <path d="m4 4 8 8m0-8-8 8" />,
  tick: <path d="m4.5 8.3 2.4 2.4 4.6-5" />,
  chain: [SHIELD, <path d="m5.6 8 1.7 1.7 3.1-3.4" />],
  shield: SHIELD,
  light: [
    <circle cx="8" cy="8" r="3" />,
    <path d="M8 1v2m0 10v2M1 8h2m10 0h2M3 3l1.5 1.500m7 7L13 13m0-10-1.5 1.500m-7 7L3 13" />,
  ],
  dark: <path d="M13.5 9.500A6 6 0 0 1 6.5 2.500a6 6 0 1 0 7 7z" />,
  auto: [RING, <path class="solid" d="M8 2a6 6 0 0 0 0 12z" />],
  keys: [<rect x="1.5" y="4" width="13" height="8.5" rx="1.5" />, <path d="M4 7h.01M7 7h.01M10 7h.01M5 10h6" />],
  compare: <path d="M5 2.500v11m-3-8 3-3 3 3m3-3v11m-3-3 3 3 3-3" />,
  tree: [
    <rect x="1.5" y="2" width="5.5" height="4" rx="1" />,
    <path d="M4 6v6h4.5" />,
    <rect x="8.5" y="10" width="6" height="4" rx="1" />,
  ],
  list: <path d="M2.5 4h11m-11 4h11m-11 4h11" />,
  copy: [<rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />, <path d="M3 10.500V3.500A1 1 0 0 1 4 2.500h6.5" />],
  people: [<circle cx="8" cy="5.5" r="2.7" />, <path d="M3 14c0-3 2-4.7 5-4.700S13 11 13 14" />],
} as const;

export const Icon = ({ name }: { readonly name: keyof typeof ICON_SHAPES }) => <Svg>{ICON_SHAPES[name]}</Svg>;

type IconButtonProps = Omit<ComponentProps<'button'>, 'class' | 'icon' | 'label'> & {
  readonly icon: keyof typeof ICON_SHAPES;
  readonly label: string;
  readonly class?: string;
};

/** A button that shows only an icon; `label` is its name. */
export const IconButton = ({ icon, label, class: name = '', ...rest }: IconButtonProps) => (
  <button type="button" class={`plain ${name}`} aria-label={label} {...rest}>
    <Icon name={icon} />
  </button>
);

export const Logo = () => (
  <svg class="logo" viewBox="0 0 24 24" width="20" height="20" aria-hidden="true">
    <rect x="2" y="3" width="9" height="7" rx="2" class="solid" />
    <rect x="13" y="14" width="9" height="7" rx="2" />
    <path d="M6.5 10v5A2.5 2.5 0 0 0 9 17.500h4" />
  </svg>
);

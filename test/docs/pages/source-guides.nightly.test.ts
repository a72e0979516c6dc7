// The guides for those who change the source code, each followed in a copy of this checkout.

import { test } from '@jest/globals';
import { MS_MAX } from '../programs.js';
import { followSourceGuide } from './follow-page.js';
import { SOURCE_GUIDES } from './pages.js';

test.each(SOURCE_GUIDES)('%s prints what it shows', followSourceGuide, MS_MAX);

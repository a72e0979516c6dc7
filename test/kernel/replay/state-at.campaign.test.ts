// The states of every run at many more entries.

import './state-at.test.js';

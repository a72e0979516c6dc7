// 60 random sessions.

import './random-walk.test.js';

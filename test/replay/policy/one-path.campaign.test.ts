// 200,000 requests under 400 policies.

import './one-path.test.js';

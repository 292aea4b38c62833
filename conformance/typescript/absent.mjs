// Sets an option that is rejected; `params.feature` names it.
import { asked, follow, options, sdk } from './stage.mjs'

const features = {
  'an unknown session': { resume: '0b5e6c1e-7d8b-4a52-9f3b-3f5f6f0a7a11' },
}
await follow(sdk.query({ prompt: asked.prompts[0], options: { ...options, ...features[asked.feature] } }))

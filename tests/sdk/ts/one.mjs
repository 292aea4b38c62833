// One string prompt, to its end.
import { asked, follow, options, sdk } from './stage.mjs'

await follow(sdk.query({ prompt: asked.prompts[0], options }))

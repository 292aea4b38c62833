// One prompt to its end: a string, or with `asked.as_iterable` streaming input that ends at once.
import { asked, follow, openInput, options, sdk } from './stage.mjs'

const [text] = asked.prompts
const input = openInput(text)
input.close()
await follow(sdk.query({ prompt: asked.as_iterable ? input : text, options }))

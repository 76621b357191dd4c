"""Texts that belong to no memory, as a scale for closeness.

What questions have in common is taken out of a question's vector. What is closer to general knowledge and small talk
than to any record is not a question to the memory.
"""

from __future__ import annotations

__all__ = ["GENERAL_MATTERS", "QUESTIONS"]

QUESTIONS = (
    "What is it?", "Where does she live?", "When will it happen?", "Who is responsible for this?",
    "How does it work?", "Why was it changed?", "Which one does the user prefer?", "How often does this occur?",
    "How much does it cost?", "Can I use it?", "Is there anything to know about them?", "What should I do?",
    "Tell me about it.", "Do they have one?", "那是什么？", "他住在哪里？", "什么时候开始？", "谁负责这件事？",
    "怎么做？", "为什么改了？", "用户喜欢哪一个？", "多久一次？", "多少钱？", "可以用吗？", "有什么要注意的？",
    "我该怎么办？", "介绍一下。", "他们有没有？",
)  # fmt: skip

GENERAL_MATTERS = (
    "astronomy: planets, stars and galaxies", "physics: light, energy and gravity",
    "chemistry: atoms, molecules and reactions", "biology: cells, plants and evolution",
    "geology: earthquakes, volcanoes and oceans", "geography: capitals, rivers, mountains and deserts",
    "world history: empires, wars and revolutions", "famous inventors and explorers",
    "mathematics: equations, geometry and proofs", "unit conversion and arithmetic", "statistics and probability",
    "computer science: algorithms and data structures", "how the internet works",
    "economics: inflation, markets and taxes", "philosophy and ethics", "religion and mythology",
    "classical literature and famous novels", "the plot of a play", "poetry: write a poem",
    "music theory and composers", "painting and art history", "films and television",
    "sports championships and records", "a cooking recipe", "animals and insects", "dinosaurs and fossils",
    "weather and climate", "medicine: how a disease works", "grammar and the meaning of a word",
    "translate a sentence", "proverbs and idioms", "tell me a joke", "write a story", "write a letter or a speech",
    "summarise a text", "rewrite this paragraph", "sort or count a list", "brainstorm ideas", "hello, how are you?",
    "good morning", "goodbye", "thank you very much", "yes, please", "no, never mind", "ok, go on", "try again",
    "天文：行星、恒星和星系", "物理：光、能量和引力", "化学：原子、分子和反应", "生物：细胞、植物和进化",
    "地质：地震、火山和海洋", "地理：首都、河流、山脉和沙漠", "历史：朝代、战争和皇帝", "著名的发明家和探险家",
    "数学：方程、几何和证明", "单位换算和算术", "统计与概率", "计算机：算法和数据结构", "经济：通货膨胀、市场和税收",
    "哲学与宗教", "古典小说和人物", "神话和传说", "写一首诗", "作曲家和乐理", "绘画与艺术史", "电影和电视剧",
    "体育比赛的冠军", "一道菜的做法", "动物和昆虫", "天气和气候", "疾病的原理", "语法和词语的意思", "翻译一句话",
    "成语和谚语", "讲个笑话", "写一个故事", "写一篇发言稿", "总结一段文字", "改写这段话", "给一些点子",
    "你好，最近怎么样？", "早上好", "再见", "非常感谢", "好的，麻烦你了", "不用了", "继续说", "再试一次",
)  # fmt: skip

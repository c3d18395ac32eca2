SELECT id FROM reference WHERE target = :target AND kind = :kind AND text = :text AND window = :window;
